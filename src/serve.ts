import { setTimeout as sleep } from 'node:timers/promises';
import { backlog } from './api/http/connections.ts';
import { type AppOptions, buildApp } from './app.ts';

/** What a process runs: the service itself, or its workers. */
export interface Service {
  /** The address, when it can be reached there. */
  listening: Promise<string>;
  /**
   * @param delay how long (ms) all is still served
   * @returns whether all that was in hand has been finished
   */
  drain(delay: number): Promise<boolean>;
  /** What is under way, for the log. */
  left(): { requests: number } | { workers: number };
}

/** Serves in this process. */
export async function serve(options: AppOptions): Promise<Service> {
  const { config, parent } = options;
  const app = await buildApp(options);
  const address = await app.listen({ port: config.port, host: config.host, backlog });
  parent?.ready(address);
  return {
    listening: Promise.resolve(address),
    async drain(delay) {
      app.startDraining();
      if (delay > 0) await sleep(delay);
      await app.close();
      return true;
    },
    left: () => ({ requests: app.underWay.count }),
  };
}
