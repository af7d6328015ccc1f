import type { RequestObserver } from '../../runtime/telemetry/observers.ts';

declare module 'fastify' {
  interface FastifyInstance {
    underWay: UnderWay;
  }
}

/** Counts the requests that are not yet answered. */
export class UnderWay implements RequestObserver {
  count = 0;

  began(): void {
    this.count += 1;
  }

  ended(): void {
    this.count -= 1;
  }
}
