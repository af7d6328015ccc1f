import { promisify } from 'node:util';
import { databaseMetrics, databaseReadings } from './database-metrics.ts';
import type { Metrics } from './metrics.ts';
import type { ObservedApp, Observers } from './observers.ts';
import { OperationMetrics } from './operation-metrics.ts';
import { requestMetrics } from './request-metrics.ts';
import { other } from './words.ts';

/** How many keys may have a series of their own. */
const mostKeys = 200;

/** Adds all that is measured in a process that serves. */
export function measure(metrics: Metrics, observers: Observers): void {
  const operations = new OperationMetrics(metrics);
  observers.operations.push(operations);
  observers.requests.push(requestMetrics(metrics, operations));
  observers.databases.push(databaseMetrics(metrics));
  const lookUps = metrics.counter('animal_store_key_lookups_total');
  const results = { known: lookUps.with('known'), unknown: lookUps.with('unknown'), failed: lookUps.with('failed') };
  observers.keys = { lookedUp: (result) => results[result].add(), deprecatedCall: deprecatedCalls(metrics) };
  observers.onBuilt = (app, database) => {
    databaseReadings(metrics, database);
    serverReadings(metrics, app);
    app.addHook('onReady', async () => operations.declare(operationIdsOf(app), app.graphqlSchema));
  };
}

/** By the contract that is served. */
function operationIdsOf(app: ObservedApp): string[] {
  const { paths = {} } = app.swagger() as { paths?: Record<string, Record<string, { operationId?: string }>> };
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  return operations.flatMap(({ operationId }) => operationId ?? []);
}

function deprecatedCalls(metrics: Metrics): (operation: string, key: string) => void {
  const calls = metrics.counter('animal_store_deprecated_calls_total');
  const keys = new Set<string>();
  return (operation, key) => {
    if (keys.size < mostKeys) keys.add(key);
    calls.with(operation, keys.has(key) ? key : other).add();
  };
}

function serverReadings(metrics: Metrics, app: ObservedApp): void {
  metrics.reading('http_server_active_requests', () => [[app.underWay.count]]);
  metrics.reading('animal_store_draining', () => [[app.isDraining ? 1 : 0]]);
  metrics.reading('animal_store_subscriptions', () => [[app.subscriptions.count]]);
  metrics.reading('animal_store_subscription_items_total', () => [[app.subscriptions.delivered]]);
  const connections = promisify(app.server.getConnections.bind(app.server));
  metrics.reading('animal_store_connections', async () => [[await connections()]]);
  metrics.reading('animal_store_requests_shed_total', () => [[app.shedRequests]]);
  // Node's event for a connection beyond `maxConnections`.
  const refused = metrics.counter('animal_store_connections_refused_total').with();
  app.server.on('drop', () => refused.add());
}
