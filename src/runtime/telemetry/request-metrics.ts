import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify';
import type { Distribution, Family } from './instruments.ts';
import type { Metrics } from './metrics.ts';
import type { RequestEnd, RequestObserver } from './observers.ts';
import { type OperationMetrics, type OperationSeries } from './operation-metrics.ts';
import { knownMethods, other, routeOf } from './words.ts';

interface Route {
  name: string;
  /** By method and status: series that were there before. */
  durations: Map<number, Distribution>;
  /** What REST calls it; undefined where it is none: GraphQL, health, pages. */
  operation: OperationSeries | undefined;
}

/** Counts requests and what they were refused for. One look-up by route and one by status lead to all that it adds to. */
export function requestMetrics(metrics: Metrics, operations: OperationMetrics): RequestObserver {
  const durations = metrics.histogram('http_server_request_duration_seconds');
  const aborted = metrics.counter('http_server_aborted_requests_total').with();
  const replays = metrics.counter('animal_store_idempotent_replays_total').with();
  const refusals = metrics.counter('animal_store_auth_refusals_total');
  const routes = new Map<FastifyContextConfig, Route>();
  const unknown: Route = { ...routeFor(other), operation: operations.of('rest', other) };

  const routeTaken = (request: FastifyRequest, id: string | undefined): Route => {
    if (request.is404) return unknown;
    const { config, url } = request.routeOptions;
    const known = routes.get(config);
    if (known) return known;
    const operation = id === undefined ? undefined : operations.of('rest', id);
    const route = url === undefined || url === '*' ? unknown : { ...routeFor(routeOf(url)), operation };
    routes.set(config, route);
    return route;
  };

  return {
    ended(request: FastifyRequest, reply: FastifyReply, end: RequestEnd) {
      const { milliseconds, isAnswered, call, caller } = end;
      const route = routeTaken(request, end.route.id);
      const status = isAnswered ? reply.statusCode : 0;
      // A stream lasts as long as its client likes: what counts is when it began.
      const seconds = (call.streamedAfter ?? milliseconds) / 1000;
      seriesOf(durations, route, request.method, status).observe(seconds);
      if (!isAnswered) aborted.add();
      const { code } = call;
      // What a client has given up neither succeeded nor failed.
      if (route.operation && (isAnswered || code !== undefined)) route.operation.ended(code, seconds);
      else if (end.route.face === 'graphql' && call.operationBegan === undefined && code !== undefined) {
        operations.of('graphql', other).ended(code, seconds);
      }
      if (reply.getHeader('idempotent-replayed') === 'true') replays.add();
      const isOfKey = code === 'UNAUTHENTICATED' || code === 'FORBIDDEN';
      // With a caller it is the quota's, which the operations count.
      if (isOfKey || (code === 'TOO_MANY_REQUESTS' && !caller)) refusals.with(code).add();
    },
  };
}

function routeFor(name: string): Omit<Route, 'operation'> {
  return { name, durations: new Map() };
}

function seriesOf(all: Family<Distribution>, { name, durations }: Route, method: string, status: number): Distribution {
  const place = knownMethods.indexOf(method);
  const key = 16 * status + place + 1;
  let series = durations.get(key);
  if (!series) {
    series = all.with(place < 0 ? other : method, name, status === 0 ? '' : `${status}`);
    durations.set(key, series);
  }
  return series;
}
