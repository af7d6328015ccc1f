import { Workers } from '@animal-store/cluster';
import { RateLimiterClusterMaster } from 'rate-limiter-flexible';
import { withTimeout } from '../../database/with-timeout.ts';
import { StoreError } from '../../errors.ts';
import {
  lastStep,
  type ServiceProcess,
  type Serving,
} from '../../process/service-types.ts';
import type { LogSettings } from '../../runtime/log/log.ts';

/** How long (ms) a worker may take after its drain: two steps, and the log. */
const afterDrain = 2 * lastStep + 2000;

/** Serves through workers, which run the same program. */
export function asParent(
  { config, log, output, program, stop }: ServiceProcess,
  count: number,
): Serving {
  return {
    startWorkers() {
      // Serves the limiters of all workers.
      new RateLimiterClusterMaster();
      const workers = new Workers({
        program,
        count,
        shared: log.settings,
        log: log.logger,
        output,
        drainTime: config.drainDelay + config.drainTimeout + afterDrain,
        onGiveUp(reason) {
          if (reason) process.stderr.write(`${config.name}: ${reason}\n`);
          stop('workers cannot serve');
        },
      });
      log.onChange = (settings) => workers.share(settings);
      return {
        address: workers.listening,
        check: () => check(workers),
        close: () => workers.drain(),
        left: () => ({ workers: workers.up }),
      };
    },
  };
}

/** How long (ms) the workers may take to answer; they need up to two seconds. */
const readinessTimeout = 2500;

/**
 * Asks the workers. Those that have not answered an earlier question within
 * `readinessTimeout` do not count.
 */
async function check(workers: Workers<LogSettings>) {
  const late = () => new Error('No worker answers.');
  const answer = await withTimeout(readinessTimeout, workers.ask(), late).catch(
    (cause) => {
      const { message } = cause.errors?.[0] ?? cause;
      throw new StoreError('SERVICE_UNAVAILABLE', message, { cause });
    },
  );
  const { up, silent, options } = workers;
  if (silent === 0) return answer;
  return { ...answer, workers: `${up - silent} of ${options.count}` };
}
