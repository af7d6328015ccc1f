import { promisify } from 'node:util';
import type { GraphQLFormattedError } from 'graphql';
import { withTimeout } from '../with-timeout.ts';
import { codeLabel, methodLabel, other, routeLabel } from './labels.ts';
import type { Metrics, Reading } from './metrics.ts';
import type {
  DatabaseObserver,
  KeyObserver,
  ObservedApp,
  ObservedDatabase,
  Observers,
  OperationObserver,
  PoolState,
  QueueState,
  RequestObserver,
} from './observers.ts';

/** OpenTelemetry's advice for HTTP, in seconds. */
const ofHttp = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Most operations take less than its first limit. */
const ofOperations = [0.001, 0.0025, ...ofHttp];
const ofDatabase = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const ofBatches = [1, 2, 4, 8, 16, 32, 64, 128, 256];

const batch = ['db_collection_name', 'db_operation_name'];
const queue = ['collection', 'operation'];

/** How many API keys may have a series of their own. */
const maxKeys = 200;
/** How long (ms) the database may take to answer before it counts as down. */
const pingTimeout = 1000;

/** Counts one operation of an API. */
type CountOperation = (face: 'rest' | 'graphql', operation: string, code: unknown, seconds: number) => void;

/** Adds what a serving process measures. */
export function measure(metrics: Metrics, observers: Observers): void {
  const total = metrics.counter(
    'animal_store_operations_total',
    'Operations (in GraphQL, root fields) by error code; OK without one.',
    ['face', 'operation', 'code'],
  );
  const durations = metrics.histogram(
    'animal_store_operation_duration_seconds',
    'Duration of operations; for a GraphQL root field, of its whole operation.',
    ofOperations,
    ['face', 'operation'],
  );
  const quotaRefusals = metrics.counter(
    'animal_store_quota_refusals_total',
    'Operations refused because the key has used its quota.',
  );
  const count: CountOperation = (face, operation, code, seconds) => {
    durations.observe({ face, operation }, seconds);
    total.inc({ face, operation, code: codeLabel(code) });
    if (code === 'TOO_MANY_REQUESTS') quotaRefusals.inc();
  };
  observers.operations.push(operationMetrics(count));
  observers.requests.push(requestMetrics(metrics, count));
  observers.databases.push(databaseMetrics(metrics));
  observers.keys = keyMetrics(metrics);
  observers.onBuilt = (app, database) => {
    databaseState(metrics, database);
    appState(metrics, app);
    // Prometheus sees no increase in a series that it sees for the first time, and alerts look at these.
    app.addHook('onReady', async () => {
      for (const [face, operation] of [...operationsOf(app), ['rest', other]] as const) {
        durations.zero({ face, operation });
        for (const code of ['OK', 'SERVICE_UNAVAILABLE', 'INTERNAL_SERVER_ERROR'])
          total.inc({ face, operation, code }, 0);
      }
    });
  };
}

/** All operations of both APIs, by the contracts that are served. */
function operationsOf(app: ObservedApp): Array<['rest' | 'graphql', string]> {
  const { paths = {} } = app.swagger() as { paths?: Record<string, Record<string, { operationId?: string }>> };
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  const { graphqlSchema: schema } = app;
  const types = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  return [
    ...operations.flatMap(({ operationId }): Array<['rest', string]> => (operationId ? [['rest', operationId]] : [])),
    ...types
      .flatMap((type) => Object.keys(type?.getFields() ?? {}))
      .map((name): ['graphql', string] => ['graphql', name]),
  ];
}

function requestMetrics(metrics: Metrics, count: CountOperation): RequestObserver {
  const durations = metrics.histogram(
    'http_server_request_duration_seconds',
    'Duration of HTTP requests, of streams until they begin.',
    ofHttp,
    ['http_request_method', 'http_route', 'http_response_status_code'],
  );
  const aborted = metrics.counter(
    'http_server_aborted_requests_total',
    'HTTP requests whose client disconnected before the answer.',
  );
  const replays = metrics.counter(
    'animal_store_idempotent_replays_total',
    'Responses repeated for their idempotency key.',
  );
  const refusals = metrics.counter('animal_store_auth_refusals_total', 'Requests refused because of their API key.', [
    'code',
  ]);
  return {
    ended(request, reply, { milliseconds, isAnswered, call, caller, route: { face, id } }) {
      const { code } = call;
      const route = routeLabel(request);
      // A stream lasts as long as its client likes: what counts is when it began.
      const seconds = (call.streamedAfter ?? milliseconds) / 1000;
      const labels = {
        http_request_method: methodLabel(request.method),
        http_route: route,
        http_response_status_code: isAnswered ? `${reply.statusCode}` : '',
      };
      durations.observe(labels, seconds);
      if (!isAnswered) aborted.inc();
      const operation = route === other ? other : id;
      // What a client has given up neither succeeded nor failed.
      if (operation && (isAnswered || code !== undefined)) count('rest', operation, code, seconds);
      else if (face === 'graphql' && call.operationBegan === undefined && code !== undefined) {
        count('graphql', other, code, seconds);
      }
      if (reply.getHeader('idempotent-replayed') === 'true') replays.inc();
      const isOfKey = code === 'UNAUTHENTICATED' || code === 'FORBIDDEN';
      // With a caller it is the quota's, which the operations count.
      if (isOfKey || (code === 'TOO_MANY_REQUESTS' && !caller)) refusals.inc({ code });
    },
  };
}

function operationMetrics(count: CountOperation): OperationObserver {
  return {
    began({ call }) {
      call.operationBegan = performance.now();
    },
    ended({ fields, call }, errors) {
      const now = call.streamedAfter === undefined ? performance.now() : call.arrived + call.streamedAfter;
      call.operationBegan ??= now;
      const seconds = (now - call.operationBegan) / 1000;
      // Fields of the schema, because the document is valid, or those of introspection.
      for (const [key, name] of fields) {
        count('graphql', name.startsWith('__') ? other : name, errors && codeFor(key, errors), seconds);
      }
    },
  };
}

/** The code of the error at this field; an error without a path is about the whole operation. */
function codeFor(key: string, errors: readonly GraphQLFormattedError[]): unknown {
  return errors.find(({ path }) => path === undefined || path[0] === key)?.extensions?.code;
}

function databaseMetrics(metrics: Metrics): DatabaseObserver {
  const durations = metrics.histogram(
    'db_client_operation_duration_seconds',
    'Duration of round trips to the database.',
    ofDatabase,
    [...batch, 'error_type'],
  );
  const sizes = metrics.histogram('db_client_operation_batch_size', 'Inputs per round trip.', ofBatches, batch);
  const reads = metrics.counter('animal_store_read_node_reads_total', 'Reads sent to each server.', ['node']);
  return {
    sent({ collection: db_collection_name, operation: db_operation_name, size }) {
      const began = performance.now();
      const labels = { db_collection_name, db_operation_name };
      sizes.observe(labels, size);
      return (failure) => {
        durations.observe({ ...labels, error_type: failure?.type ?? '' }, (performance.now() - began) / 1000);
      };
    },
    readOn: (node) => reads.inc({ node }),
  };
}

function keyMetrics(metrics: Metrics): KeyObserver {
  const lookUps = metrics.counter('animal_store_key_lookups_total', 'Look-ups of API keys in the database.', [
    'result',
  ]);
  for (const result of ['known', 'unknown', 'failed']) lookUps.inc({ result }, 0);
  const deprecated = metrics.counter(
    'animal_store_deprecated_calls_total',
    'Calls of deprecated operations, by the name of the key.',
    ['operation', 'key'],
  );
  const names = new Set<string>();
  return {
    lookedUp: (result) => lookUps.inc({ result }),
    deprecatedCall(operation, key) {
      if (names.size < maxKeys) names.add(key);
      deprecated.inc({ operation, key: names.has(key) ? key : other });
    },
  };
}

function databaseState(metrics: Metrics, database: ObservedDatabase): void {
  const perQueue = (read: (queue: QueueState) => number) => (): Reading[] =>
    database.queues.map((one) => [read(one), one.collection, one.operation]);
  const perPool = (read: (pool: PoolState) => number) => (): Reading[] =>
    database.pools.map((one) => [read(one), one.pool]);
  const waiting = perQueue((one) => one.waiting);
  const oldest = perQueue((one) => one.oldest / 1000);
  const refused = perQueue((one) => one.refused);
  metrics.gauge('animal_store_queue_waiting', 'Inputs that wait for their batch.', waiting, queue);
  metrics.gauge('animal_store_queue_oldest_seconds', 'How long the first of them has waited.', oldest, queue, 'max');
  metrics.counter('animal_store_queue_refused_total', 'Inputs rejected because the queue was full.', queue, refused);
  const max = perPool((one) => one.max);
  const pending = perPool((one) => one.pending);
  const connections = () =>
    database.pools.flatMap(({ pool, idle, used }): Reading[] => [
      [idle, pool, 'idle'],
      [used, pool, 'used'],
    ]);
  metrics.gauge('db_client_connection_count', 'Connections to PostgreSQL.', connections, ['pool', 'state']);
  metrics.gauge('db_client_connection_max', 'Most connections to PostgreSQL.', max, ['pool']);
  metrics.gauge('db_client_connection_pending_requests', 'Statements waiting for a connection.', pending, ['pool']);
  const isUp = (): Promise<Reading[]> =>
    withTimeout(pingTimeout, database.ping(), () => new Error('The database is silent.')).then(
      () => [[1]],
      () => [[0]],
    );
  metrics.gauge('animal_store_database_up', '1 when the database has answered within a second.', isUp, [], 'min');
}

function appState(metrics: Metrics, app: ObservedApp): void {
  metrics.gauge('http_server_active_requests', 'HTTP requests in progress.', () => [[app.activeRequests.count]]);
  metrics.gauge(
    'animal_store_draining',
    '1 while the service shuts down.',
    () => [[app.isDraining ? 1 : 0]],
    [],
    'max',
  );
  metrics.gauge('animal_store_subscriptions', 'Open subscriptions.', () => [[app.subscriptions.count]]);
  metrics.counter('animal_store_subscription_items_total', 'Items sent to subscriptions.', [], () => [
    [app.subscriptions.delivered],
  ]);
  metrics.counter(
    'animal_store_requests_shed_total',
    'HTTP requests refused because the event loop was full.',
    [],
    () => [[app.shedRequests]],
  );
  const connections = promisify(app.server.getConnections.bind(app.server));
  metrics.gauge('animal_store_connections', 'Open HTTP connections.', async () => [[await connections()]]);
  const refused = metrics.counter(
    'animal_store_connections_refused_total',
    'HTTP connections closed because there were too many.',
  );
  // Node's event for a connection beyond `maxConnections`.
  app.server.on('drop', () => refused.inc());
}
