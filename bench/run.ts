import { setTimeout as sleep } from 'node:timers/promises';
import { check } from './check.ts';
import { BenchDatabase } from './database.ts';
import { describeRun } from './describe.ts';
import { calmest, load, onTheWire } from './load.ts';
import { forgetPeak, peakMiB, residentMiB } from './measure.ts';
import { Refusal, readOptions, usage } from './options.ts';
import { prepare } from './prepare.ts';
import { type Cell, type Life, writeReport } from './report.ts';
import { type Server, start } from './server.ts';
import type { System } from './systems.ts';
import { seededRandom, workloads } from './workloads.ts';

// The first load of a process, and of each workload, is for the just-in-time compiler alone.
const warmUp = { connections: 32, firstSeconds: 3, part: 0.5, milliseconds: 200 };

async function main(): Promise<void> {
  if (process.argv.includes('--help')) {
    process.stdout.write(`${usage}\n`);
    return;
  }
  const options = readOptions(process.argv.slice(2), process.env);
  const interrupted = interruption();
  prepare();
  const database = await BenchDatabase.create(options.databaseUrl);
  const lives: Life[] = [];
  const cells: Cell[] = [];
  try {
    await database.seed(options.animals, { available: 70, pending: 20 });
    for (let round = 1; round <= options.rounds; round++) {
      // Every other round goes backwards: a machine that grows slower or faster favours nobody.
      const programs = [...new Set(options.systems.map(({ program }) => program))];
      if (round % 2 === 0) programs.reverse();
      for (const program of programs) {
        const faces = options.systems.filter((system) => system.program === program);
        const server = await start(program, faces[0] as System, database.url);
        try {
          await sleep(1000);
          const life = { round, startTime: server.startTime, idleMiB: residentMiB(server.pid) };
          for (const system of faces) {
            lives.push({ system: system.id, ...life });
            await system.adapter.prepare?.(server.base);
            await check(system, server, database.client);
            await measureFace(system, server, round);
          }
        } finally {
          await server.stop();
        }
      }
    }
    writeReport(await describeRun(options, database), lives, cells);
  } catch (error) {
    throw interrupted() ? new Refusal('Interrupted.') : error;
  } finally {
    await database.drop();
  }

  async function measureFace(system: System, server: Server, round: number): Promise<void> {
    let warmUpSeconds = warmUp.firstSeconds;
    for (const name of options.workloads) {
      const workload = workloads[name];
      if (!workload || (system.workloads && !system.workloads.includes(name))) continue;
      const operations = workload.operations(seededRandom(round), options.animals);
      const requests = operations.map((operation) => onTheWire(system.adapter.request(operation)));
      const job = { port: server.port, pid: server.pid, requests, warmUp: 0 };
      await load({ ...job, connections: warmUp.connections, seconds: warmUpSeconds });
      warmUpSeconds = options.seconds * warmUp.part;
      for (const connections of options.connections) {
        if (interrupted()) throw new Error('Interrupted.');
        forgetPeak(server.pid);
        const timed = { ...job, connections, seconds: options.seconds, warmUp: warmUp.milliseconds };
        const result = await calmest(timed, options.retries);
        const cell = { system: system.id, workload: name, connections, round, ...result, peakMiB: peakMiB(server.pid) };
        cells.push(cell);
        process.stderr.write(
          `round ${round}  ${system.id}  ${name}  x${connections}  ${Math.round(result.perSecond)}/s  ${Math.round(result.serverMicros)} us\n`,
        );
      }
      if (workload.writes) await database.restore();
    }
  }
}

/** The first Ctrl-C ends the run in order: the server is stopped and the database dropped. */
function interruption(): () => boolean {
  let interrupted = false;
  const interrupt = () => {
    interrupted = true;
  };
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  return () => interrupted;
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Refusal ? error.message : (error as Error).stack}\n`);
  process.exit(1);
});
