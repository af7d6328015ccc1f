import { setTimeout as sleep } from 'node:timers/promises';
import { aloneTables, timeCommands } from './alone.ts';
import { check } from './check.ts';
import { BenchDatabase } from './database.ts';
import { describeRun } from './describe.ts';
import {
  encodeRequest,
  type LoadResult,
  leastDisturbed,
  load,
} from './load.ts';
import { peakMiB, resetPeak, residentMiB } from './measure.ts';
import { readOptions, usage } from './options.ts';
import { prepare } from './prepare.ts';
import { type Cell, type StartResult, writeReport } from './report.ts';
import { type Server, start } from './server.ts';
import type { System } from './systems.ts';
import { UserError } from './user-error.ts';
import { seededRandom, workloads } from './workloads.ts';

// Load before the measurements of a process (at each number of connections), in
// durations of a measurement, and a part of it before each further workload,
// for the just-in-time compiler. One connection takes longest to send what it
// needs.
const warmUp = { alone: 6, many: 2, part: 0.3, milliseconds: 200 };

async function main(): Promise<void> {
  if (process.argv.includes('--help')) {
    process.stdout.write(`${usage}\n`);
    return;
  }
  const options = readOptions(process.argv.slice(2), process.env);
  const interrupted = watchInterrupts();
  prepare();
  const database = await BenchDatabase.create(options.databaseUrl);
  const starts: StartResult[] = [];
  const cells: Cell[] = [];
  try {
    await database.seed(options.petCount, { available: 70, pending: 20 });
    for (let round = 1; round <= options.rounds; round++) {
      // Every second round is in reverse order, so that a machine with changing
      // speed favours no system.
      const programs = [
        ...new Set(options.systems.map(({ program }) => program)),
      ];
      if (round % 2 === 0) programs.reverse();
      for (const program of programs) {
        const apis = options.systems.filter(
          (system) => system.program === program,
        );
        for (const system of apis) await measureFresh(system, round);
        const server = await start(program, apis[0] as System, database.url);
        try {
          await sleep(1000);
          const startResult = {
            round,
            startTime: server.startTime,
            idleMiB: residentMiB(server.pid),
          };
          for (const system of apis) {
            starts.push({ system: system.id, ...startResult });
            await system.adapter.prepare?.(server.base);
            await check(system, server, database.client);
            await measureApi(system, server, round);
          }
        } finally {
          await server.stop();
        }
      }
    }
    const compared = options.alone
      ? aloneTables(starts, cells, await timeCommands(database.url))
      : undefined;
    writeReport(await describeRun(options, database), starts, cells, compared);
  } catch (error) {
    throw interrupted() ? new UserError('Interrupted.') : error;
  } finally {
    await database.drop();
  }

  /** The first requests of a process, which V8 has not compiled. */
  async function measureFresh(system: System, round: number): Promise<void> {
    const { fresh } = workloads;
    if (!fresh || !options.workloads.includes('fresh')) return;
    const server = await start(system.program, system, database.url);
    try {
      await system.adapter.prepare?.(server.base);
      const requests = fresh
        .operations(seededRandom(round), options.petCount)
        .map((operation) => encodeRequest(system.adapter.request(operation)));
      const { count } = fresh;
      const { port, pid } = server;
      const job = { port, pid, requests, connections: 1, warmUp: 0 };
      const result = await load({
        ...job,
        seconds: 60,
        ...(count && { count }),
      });
      keep(system, 'fresh', 1, round, result, pid);
    } finally {
      await server.stop();
    }
  }

  function keep(
    { id: system }: System,
    workload: string,
    connections: number,
    round: number,
    result: LoadResult,
    pid: number,
  ): void {
    const peak = peakMiB(pid);
    cells.push({
      system,
      workload,
      connections,
      round,
      ...result,
      peakMiB: peak,
    });
    process.stderr.write(
      `round ${round}  ${system}  ${workload}  x${connections}  ${Math.round(result.perSecond)}/s  ${Math.round(result.serverMicros)} us\n`,
    );
  }

  async function measureApi(
    system: System,
    server: Server,
    round: number,
  ): Promise<void> {
    let part = 1;
    for (const name of options.workloads) {
      const workload = workloads[name];
      const isOther = system.workloads && !system.workloads.includes(name);
      if (!workload || workload.count || isOther) continue;
      const operations = workload.operations(
        seededRandom(round),
        options.petCount,
      );
      const requests = operations.map((operation) =>
        encodeRequest(system.adapter.request(operation)),
      );
      const job = { port: server.port, pid: server.pid, requests, warmUp: 0 };
      // One request alone runs other code than many at once, which V8 compiles
      // for itself.
      for (const connections of options.connections) {
        const seconds =
          part *
          options.seconds *
          (connections === 1 ? warmUp.alone : warmUp.many);
        await load({ ...job, connections, seconds });
      }
      part = warmUp.part;
      for (const connections of options.connections) {
        if (interrupted()) throw new Error('Interrupted.');
        resetPeak(server.pid);
        const timed = {
          ...job,
          connections,
          seconds: options.seconds,
          warmUp: warmUp.milliseconds,
        };
        const result = await leastDisturbed(timed, options.retries);
        keep(system, name, connections, round, result, server.pid);
      }
      if (workload.writes) await database.restore();
    }
  }
}

/**
 * After the first Ctrl-C the run stops the server and drops the database.
 * @returns whether it was pressed
 */
function watchInterrupts(): () => boolean {
  let interrupted = false;
  const interrupt = () => {
    interrupted = true;
  };
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  return () => interrupted;
}

main().catch((error: unknown) => {
  process.stderr.write(
    `${error instanceof UserError ? error.message : (error as Error).stack}\n`,
  );
  process.exit(1);
});
