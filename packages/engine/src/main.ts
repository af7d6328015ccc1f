import { LogOutput } from '@animal-store/log/log-output';
import type { Logger } from 'pino';
import { loadConfig, prepareNode } from './config/config.ts';
import { collectImportFaults } from './errors.ts';
import { complete, type Service } from './feature.ts';
import type { Serving } from './process/service-types.ts';
import { startFailure } from './process/start-failure.ts';
import { Log } from './runtime/log/log.ts';

const stopSignals = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR2',
] as const;
/** Time limit (ms) for the last log lines. */
const lastLinesTimeout = 1000;

/**
 * Runs the process: configuration, log, signals, exit. Of the service, only
 * this file exits or handles signals.
 */
async function main(service: Service, program: string) {
  prepareNode(service);
  collectImportFaults();
  let logger: Logger | undefined;
  /** Undefined before the service runs. */
  let close: ((reason: string) => Promise<never>) | undefined;
  let isStopping = false;
  let started: Promise<void> | undefined;
  const stop = (reason: string) => {
    if (!close) {
      // At once, even during a migration.
      logger?.info({ reason }, 'stopped before the start was complete');
      process.exit(0);
    }
    if (isStopping) return;
    isStopping = true;
    void close(reason);
  };
  // Under `npm start`, Ctrl-C arrives twice, from the terminal and from npm.
  // The second must not interrupt the drain.
  for (const signal of stopSignals) process.on(signal, () => stop(signal));

  const { features } = service;
  const modules = await service.modules();
  const config = loadConfig(process.env, [...modules, ...features], service);
  const isForPeople = config.log.format === 'auto' && process.stdout.isTTY;
  const output = new LogOutput(
    isForPeople
      ? (await import('./runtime/log/terminal.ts')).forTerminal
      : undefined,
  );
  const log = new Log(config.log, output);
  logger = log.logger;
  const options = { service, config, log, output, program, stop };
  // The first feature that serves otherwise wins.
  let serving: Serving | undefined;
  for (const feature of features)
    serving ??= await feature.serving?.(options, config.values);
  const { serve } = await import('./process/serve.ts');
  const running = await serve({
    ...options,
    ...serving,
    onLost: (error) => fail(service, error),
  });

  close = async (reason) => {
    const began = performance.now();
    const hasFailed = reason === unexpected;
    logger.info({ reason }, 'draining');
    const isClean = await running.close(hasFailed ? 0 : config.drainDelay);
    const ms = Math.round(performance.now() - began);
    const end = { ms, isClean, ...running.left() };
    if (isClean) logger.info(end, 'closed');
    else logger.error(end, 'closed before all was finished');
    // Lets a first key be printed. After a failure `started` may never settle.
    if (isClean) await started;
    await output.flush(lastLinesTimeout);
    process.exit(isClean && !hasFailed ? 0 : 1);
  };
  // Also an unhandled rejection, which Node makes an exception.
  process.on('uncaughtException', (err) => {
    logger.fatal({ err }, unexpected);
    if (isStopping) process.exit(1);
    stop(unexpected);
  });
  // A stop may close the database before the first key is issued.
  started = running.logStarted().catch((error: unknown) => {
    if (!isStopping) throw error;
  });
  await started;
}

const unexpected = 'unexpected failure';

function fail({ name }: Service, error: unknown): never {
  process.stderr.write(`${name}: ${startFailure(error)}\n`);
  process.exit(1);
}

/**
 * Serves until a signal.
 *
 * @param program the file that calls this, which workers run, too
 */
export const start = (service: Service, program: string) =>
  main(complete(service), program).catch((error) => fail(service, error));
