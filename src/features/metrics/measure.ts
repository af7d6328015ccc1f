import { promisify } from 'node:util';
import type { FastifyInstance } from 'fastify';
import type { GraphQLFormattedError } from 'graphql';
import type {
  Database,
  DatabaseObserver,
  QueueState,
} from '../../database/database.ts';
import { withTimeout } from '../../database/with-timeout.ts';
import {
  codeLabel,
  methodLabel,
  other,
  routeLabel,
} from '../../runtime/labels.ts';
import type {
  KeyObserver,
  Observers,
  OperationObserver,
  RequestObserver,
} from '../../runtime/observers.ts';
import type { Metrics, Reading } from './metrics.ts';

/** OpenTelemetry's recommended buckets for HTTP, in seconds. */
const httpBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
/** Finer, because most operations take less than the first bucket above. */
const operationBuckets = [0.001, 0.0025, ...httpBuckets];
const databaseBuckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
const batchBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** Maximum number of API keys with separate series. */
const maxKeys = 200;
/** How long (ms) the database may take to answer a ping. */
const pingTimeout = 1000;

/**
 * Adds the metrics of a serving process. They have OpenTelemetry's stable names
 * where those exist. Tests compare them with `docs/observe.md`, and with the
 * dashboard and the alerts in `operations/`.
 */
export function measure(metrics: Metrics): Observers {
  const operations = new OperationMetrics(metrics);
  return {
    request: measureRequests(metrics, operations),
    operation: measureRootFields(operations),
    database: measureRoundTrips(metrics),
    key: measureKeys(metrics),
    onBuilt(app, database) {
      readDatabase(metrics, database);
      readDependencies(metrics, app, database);
      for (const { name, help, labels, read } of app.counters)
        metrics.counter(name, help, labels, read);
      readApp(metrics, app);
      app.addHook('onReady', async () => operations.zero(app));
    },
  };
}

type Api = 'rest' | 'graphql';

/** The operations of both APIs; in GraphQL, root fields. */
class OperationMetrics {
  readonly #total;
  readonly #durations;

  constructor(metrics: Metrics) {
    this.#total = metrics.counter(
      'animal_store_operations_total',
      'Operations (in GraphQL, root fields) by error code; OK without one.',
      ['api', 'operation', 'code'],
    );
    this.#durations = metrics.histogram(
      'animal_store_operation_duration_seconds',
      'From the arrival to the answer.',
      operationBuckets,
      ['api', 'operation'],
    );
  }

  count(api: Api, operation: string, code: unknown, seconds: number): void {
    this.#durations.observe({ api, operation }, seconds);
    this.#total.inc({ api, operation, code: codeLabel(code) });
  }

  /**
   * Creates all series, because alerts use them, and Prometheus detects no
   * increase in the first sample of a series.
   */
  zero(app: FastifyInstance): void {
    for (const [api, operation] of [...operationsOf(app), ['rest', other]]) {
      this.#durations.zero({ api, operation } as never);
      for (const code of ['OK', 'SERVICE_UNAVAILABLE', 'INTERNAL_SERVER_ERROR'])
        this.#total.inc({ api, operation, code } as never, 0);
    }
  }
}

function measureRequests(
  metrics: Metrics,
  operations: OperationMetrics,
): RequestObserver {
  const durations = metrics.histogram(
    'http_server_request_duration_seconds',
    'Duration of requests, of streams until they begin.',
    httpBuckets,
    ['http_request_method', 'http_route', 'http_response_status_code'],
  );
  const aborted = metrics.counter(
    'http_server_aborted_requests_total',
    'The client disconnected before the answer.',
  );
  const replays = metrics.counter(
    'animal_store_idempotent_replays_total',
    'Answers repeated for an idempotency key.',
  );
  const refusals = metrics.counter(
    'animal_store_auth_refusals_total',
    'Requests refused for their key or token.',
    ['code', 'reason'],
  );
  return {
    ended(request, reply, { milliseconds, isAnswered, api, id }) {
      const { call } = request;
      const { caller, code, reason = '' } = call;
      const http_route = routeLabel(request);
      const http_request_method = methodLabel(request.method);
      const http_response_status_code = isAnswered ? `${reply.statusCode}` : '';
      // A stream's duration is up to its client, so this measures the time to
      // its start.
      const seconds = (call.streamedAfter ?? milliseconds) / 1000;
      durations.observe(
        { http_request_method, http_route, http_response_status_code },
        seconds,
      );
      if (!isAnswered) aborted.inc();
      const operation = http_route === other ? other : id;
      // A request that the client aborted neither succeeded nor failed.
      if (operation && (isAnswered || code !== undefined))
        operations.count('rest', operation, code, seconds);
      // A GraphQL request that was rejected before its operation was known.
      else if (api === 'graphql' && !call.operation?.fields && code)
        operations.count('graphql', other, code, seconds);
      if (reply.getHeader('idempotent-replayed') === 'true') replays.inc();
      const isKeyError = code === 'UNAUTHENTICATED' || code === 'FORBIDDEN';
      // With a caller, a 429 is due to the quota.
      const isLimited = code === 'TOO_MANY_REQUESTS' && !caller;
      if (code && (isKeyError || isLimited || reason))
        refusals.inc({ code, reason });
    },
  };
}

function measureRootFields(operations: OperationMetrics): OperationObserver {
  return {
    ended({ fields }, call, errors) {
      const milliseconds =
        call.streamedAfter ?? performance.now() - call.arrived;
      // The document is valid, so these are fields of the schema or of
      // introspection.
      for (const [key, name] of fields) {
        operations.count(
          'graphql',
          name.startsWith('__') ? other : name,
          errors && codeFor(key, errors),
          milliseconds / 1000,
        );
      }
    },
  };
}

/**
 * The code of the error at this field; an error without a path is about the
 * whole operation.
 */
function codeFor(
  key: string,
  errors: readonly GraphQLFormattedError[],
): unknown {
  return errors.find(({ path }) => path === undefined || path[0] === key)
    ?.extensions?.code;
}

/** All operations of both APIs, from the served contracts. */
function operationsOf(app: FastifyInstance): Array<[Api, string]> {
  const { paths = {} } = app.swagger() as {
    paths?: Record<string, Record<string, { operationId?: string }>>;
  };
  const ids = Object.values(paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  const { graphqlSchema: schema } = app;
  const types = [
    schema.getQueryType(),
    schema.getMutationType(),
    schema.getSubscriptionType(),
  ];
  const fields = types.flatMap((type) => Object.keys(type?.getFields() ?? {}));
  return [
    ...ids.filter((id) => id).map((id) => ['rest', `${id}`]),
    ...fields.map((name) => ['graphql', name]),
  ] as never;
}

function measureRoundTrips(metrics: Metrics): DatabaseObserver {
  const labelNames = ['db_collection_name', 'db_operation_name'];
  const name = 'db_client_operation_duration_seconds';
  const help = 'Duration of round trips to the database.';
  const durations = metrics.histogram(name, help, databaseBuckets, [
    ...labelNames,
    'error_type',
  ]);
  const sizes = metrics.histogram(
    'db_client_operation_batch_size',
    'Inputs per round trip.',
    batchBuckets,
    labelNames,
  );
  return {
    sent({
      collection: db_collection_name,
      operation: db_operation_name,
      size,
    }) {
      const began = performance.now();
      const labels = { db_collection_name, db_operation_name };
      sizes.observe(labels, size);
      return (failure) => {
        durations.observe(
          { ...labels, error_type: failure?.type ?? '' },
          (performance.now() - began) / 1000,
        );
      };
    },
  };
}

function measureKeys(metrics: Metrics): KeyObserver {
  const lookUps = metrics.counter(
    'animal_store_key_lookups_total',
    'Look-ups of keys in the database.',
    ['result'],
  );
  for (const result of ['known', 'unknown', 'failed'])
    lookUps.inc({ result }, 0);
  const help = 'Calls of deprecated operations, by the name of the key.';
  const deprecated = metrics.counter(
    'animal_store_deprecated_calls_total',
    help,
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

function readDatabase(metrics: Metrics, database: Database): void {
  const queue = ['collection', 'operation'];
  const perQueue = (read: (state: QueueState) => number) => (): Reading[] =>
    database.queues.map((one) => [read(one), one.collection, one.operation]);
  const waiting = perQueue((one) => one.waiting);
  const oldest = perQueue((one) => one.oldest / 1000);
  const refused = perQueue((one) => one.refused);
  metrics.gauge(
    'animal_store_queue_waiting',
    'Inputs that wait for their batch.',
    waiting,
    queue,
  );
  metrics.gauge(
    'animal_store_queue_oldest_seconds',
    'How long the first of them has waited.',
    oldest,
    queue,
    'max',
  );
  metrics.counter(
    'animal_store_queue_refused_total',
    'Inputs rejected because the queue was full.',
    queue,
    refused,
  );

  const perPool = (
    member: 'max' | 'pending' | 'idle' | 'used',
    ...labels: string[]
  ) => database.pools.map((one): Reading => [one[member], one.pool, ...labels]);
  const connections = () => [
    ...perPool('idle', 'idle'),
    ...perPool('used', 'used'),
  ];
  const pending = () => perPool('pending');
  metrics.gauge(
    'db_client_connection_count',
    'Connections to PostgreSQL.',
    connections,
    ['pool', 'state'],
  );
  metrics.gauge(
    'db_client_connection_max',
    'Most connections to PostgreSQL.',
    () => perPool('max'),
    ['pool'],
  );
  metrics.gauge(
    'db_client_connection_pending_requests',
    'Statements waiting for a connection.',
    pending,
    ['pool'],
  );
}

function readDependencies(
  metrics: Metrics,
  app: FastifyInstance,
  database: Database,
): void {
  const late = () => new Error('The database is silent.');
  const isUp = () =>
    withTimeout(pingTimeout, database.ping(), late).then(
      () => 1,
      () => 0,
    );
  const readings = async (): Promise<Reading[]> => [
    [await isUp(), 'postgresql'],
    ...Object.entries(app.dependencies).map(
      ([name, one]): Reading => [Number(one.isUp), name],
    ),
  ];
  metrics.gauge(
    'animal_store_dependency_up',
    '0 while the service cannot use it.',
    readings,
    ['dependency'],
    'min',
  );
}

function readApp(metrics: Metrics, app: FastifyInstance): void {
  const connections = promisify(app.server.getConnections.bind(app.server));
  const items = () => app.subscriptions.delivered;
  const shed = () => app.shedRequests;
  metrics.gauge(
    'http_server_active_requests',
    'HTTP requests in progress.',
    () => app.activeRequests.count,
  );
  metrics.gauge(
    'animal_store_draining',
    '1 while the service shuts down.',
    () => Number(app.isDraining),
    [],
    'max',
  );
  metrics.gauge(
    'animal_store_connections',
    'Open HTTP connections.',
    connections,
  );
  metrics.gauge(
    'animal_store_subscriptions',
    'Open subscriptions.',
    () => app.subscriptions.count,
  );
  metrics.counter(
    'animal_store_subscription_items_total',
    'Items sent to subscriptions.',
    [],
    items,
  );
  metrics.counter(
    'animal_store_requests_shed_total',
    'Requests refused: the event loop was full.',
    [],
    shed,
  );
  const refused = metrics.counter(
    'animal_store_connections_refused_total',
    'Connections closed beyond the limit.',
  );
  // Node's event for a connection beyond `maxConnections`.
  app.server.on('drop', () => refused.inc());
}
