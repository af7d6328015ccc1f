import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import closeWithGrace from 'close-with-grace';
import { loadConfig } from './config.ts';
import { ClusterWorker } from './runtime/cluster/worker.ts';
import { Log } from './runtime/log/log.ts';
import { LogOutput } from './runtime/log/log-output.ts';
import { startFailure } from './start-failure.ts';
import { assertNode } from './version.ts';

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'] as const;
// close-with-grace would handle these, too. A WebAssembly trap is a SIGSEGV that V8 turns into an exception, and a
// crash must stay a crash.
const faults = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV'] as const;
/** Time limit (ms) for the last log lines. */
const lastLines = 1000;

/**
 * The process: configuration, log, signals, end. It serves by itself, or it is the parent of workers, each of which runs
 * this program, too. Only this file exits or handles signals.
 */
async function main(): Promise<void> {
  assertNode();
  // Until there is something to drain, a signal ends the process at once, even while a migration waits.
  let stop: (reason: string) => void = () => process.exit(0);
  // Ctrl-C under `npm start` arrives twice, from the terminal and from npm: the second must not cut the drain short.
  for (const signal of stopSignals) process.on(signal, () => stop(signal));
  const worker = ClusterWorker.ofThisProcess();
  worker?.onLost(() => stop('the parent has gone'));

  const config = loadConfig(process.env);
  const count = worker ? 1 : config.workers === 'auto' ? availableParallelism() : config.workers;
  if (count > 1 && cluster.isWorker) throw new Error(nestedCluster);
  const isForPeople = config.log.format === 'auto' && process.stdout.isTTY;
  const output = new LogOutput(isForPeople ? (await import('./runtime/log/terminal.ts')).forTerminal : undefined);
  const log = new Log(config.log, output, worker?.number);
  const { logger } = log;
  worker?.onState((state) => {
    log.settings = state.log;
  });
  stop = (reason) => {
    logger.info({ reason }, 'stopped before the start was complete');
    process.exit(0);
  };

  const options = { config, log, output, worker, onLost: fail };
  const onGiveUp = (reason: string | undefined) => {
    if (reason) print(reason);
    stop('workers cannot serve');
  };
  const service =
    count > 1
      ? await (await import('./supervise.ts')).supervise(options, { program: import.meta.filename, count, onGiveUp })
      : await (await import('./serve.ts')).serve(options);

  let reason: string | undefined;
  const { close } = closeWithGrace(
    {
      delay: config.drainDelay + config.drainTimeout + service.closing,
      logger,
      skip: [...stopSignals, ...faults],
      onTimeout: (ms: number) => logger.error({ ms, ...service.left() }, 'closed before all was finished'),
    },
    async ({ err }) => {
      const began = performance.now();
      if (err) logger.fatal({ err }, 'unexpected failure');
      else logger.info({ reason }, 'draining');
      const isClean = await service.drain(err ? 0 : config.drainDelay);
      await service.close();
      logger.info({ ms: Math.round(performance.now() - began), isClean, ...service.left() }, 'closed');
      await output.close(lastLines);
      if (!isClean) process.exit(1);
    },
  );
  stop = (why) => {
    stop = () => undefined;
    reason = why;
    close();
  };
  await service.announce?.(await service.listening);
}

const nestedCluster =
  'WORKERS is more than 1 in a process that is a cluster worker itself (PM2 in cluster mode): set WORKERS=1, or start one process (PM2 in fork mode).';

function print(reason: string): void {
  process.stderr.write(`animal-store: ${reason}\n`);
}

function fail(error: unknown): never {
  print(startFailure(error));
  process.exit(1);
}

main().catch(fail);
