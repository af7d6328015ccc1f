import { promisify } from 'node:util';
import type { FastifyInstance } from 'fastify';
import type { GraphQLFormattedError } from 'graphql';
import type {
  Database,
  DatabaseObserver,
  QueueState,
} from '../../database/database.ts';
import { withTimeout } from '../../database/with-timeout.ts';
import { Unavailable } from '../../errors.ts';
import type { Metric, Parts, Reading } from '../../feature.ts';
import {
  codeLabel,
  methodLabel,
  other,
  routeLabel,
} from '../../runtime/labels.ts';
import type {
  KeyObserver,
  OperationObserver,
  RequestObserver,
} from '../../runtime/observers.ts';
import type { Metrics } from './metrics.ts';

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
 * Measures what a process observes. The names are OpenTelemetry's stable ones
 * where those exist. Tests compare them with `docs/observe.md`, and with the
 * dashboard and the alerts in `operations/`.
 */
export function observersFor(metrics: Metrics) {
  const operations = new OperationMetrics(metrics);
  return {
    operations,
    request: measureRequests(metrics, operations),
    operation: measureRootFields(operations),
    database: measureRoundTrips(metrics),
    key: measureKeys(metrics),
  };
}

type Api = 'rest' | 'graphql';

/** The operations of both APIs; in GraphQL, root fields. */
class OperationMetrics {
  readonly #total;
  readonly #durations;

  constructor(metrics: Metrics) {
    this.#total = metrics.counter(
      'service_operations_total',
      'Operations (in GraphQL, root fields) by error code; OK without one.',
      ['api', 'operation', 'code'],
    );
    this.#durations = metrics.histogram(
      'service_operation_duration_seconds',
      'From the arrival to the answer.',
      operationBuckets,
      ['api', 'operation'],
    );
  }

  count(api: Api, operation: string, code: unknown, seconds: number) {
    this.#durations.observe({ api, operation }, seconds);
    this.#total.inc({ api, operation, code: codeLabel(code) });
  }

  /**
   * Creates all series, because alerts use them, and Prometheus detects no
   * increase in the first sample of a series.
   */
  zero(app: FastifyInstance) {
    const unknown = { api: 'rest', operation: other };
    for (const labels of [...operationsOf(app), unknown]) {
      this.#durations.zero(labels);
      for (const code of ['OK', 'SERVICE_UNAVAILABLE', 'INTERNAL_SERVER_ERROR'])
        this.#total.inc({ ...labels, code }, 0);
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
  const cuts = metrics.counter(
    'service_answers_cut_total',
    'Answers that the service has cut off.',
    ['reason'],
  );
  const replays = metrics.counter(
    'service_idempotent_replays_total',
    'Answers repeated for an idempotency key.',
  );
  const refusals = metrics.counter(
    'service_auth_refusals_total',
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
      if (call.cut) cuts.inc({ reason: call.cut });
      else if (!isAnswered) aborted.inc();
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
      const isRefused = isKeyError || isLimited || reason;
      if (code && isRefused) refusals.inc({ code, reason });
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
function codeFor(key: string, errors: readonly GraphQLFormattedError[]) {
  return errors.find(({ path }) => path === undefined || path[0] === key)
    ?.extensions?.code;
}

/** All operations of both APIs, from the served contracts. */
function operationsOf(app: FastifyInstance) {
  const operations: Array<{ api: Api; operation: string }> = [];
  const { paths = {} } = app.swagger() as {
    paths?: Record<string, Record<string, { operationId?: string }>>;
  };
  for (const path of Object.values(paths))
    for (const { operationId: operation } of Object.values(path))
      if (operation) operations.push({ api: 'rest', operation });
  const { graphqlSchema: schema } = app;
  const types = [
    schema.getQueryType(),
    schema.getMutationType(),
    schema.getSubscriptionType(),
  ];
  for (const type of types)
    for (const operation of Object.keys(type?.getFields() ?? {}))
      operations.push({ api: 'graphql', operation });
  return operations;
}

function measureRoundTrips(metrics: Metrics): DatabaseObserver {
  const durations = metrics.histogram(
    'db_client_operation_duration_seconds',
    'Duration of round trips to the database.',
    databaseBuckets,
    ['db_collection_name', 'db_operation_name', 'error_type'],
  );
  const sizes = metrics.histogram(
    'db_client_operation_batch_size',
    'Inputs per round trip.',
    batchBuckets,
    ['db_collection_name', 'db_operation_name'],
  );
  return {
    sent({ collection, operation, size }) {
      const began = performance.now();
      const labels = {
        db_collection_name: collection,
        db_operation_name: operation,
      };
      sizes.observe(labels, size);
      return (failure) => {
        const seconds = (performance.now() - began) / 1000;
        const error_type = failure?.type ?? '';
        durations.observe({ ...labels, error_type }, seconds);
      };
    },
  };
}

function measureKeys(metrics: Metrics): KeyObserver {
  const lookUps = metrics.counter(
    'service_key_lookups_total',
    'Look-ups of keys in the database.',
    ['result'],
  );
  for (const result of ['known', 'unknown', 'failed'])
    lookUps.inc({ result }, 0);
  const deprecated = metrics.counter(
    'service_deprecated_calls_total',
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

/** The database, and what else the service uses. */
export function measureDependencies(
  database: Database,
  parts: readonly Parts[],
): Metric[] {
  const queue = ['collection', 'operation'];
  const perQueue = (read: (state: QueueState) => number) => (): Reading[] =>
    database.queues.map((one) => [read(one), one.collection, one.operation]);
  const perPool = (
    member: 'max' | 'pending' | 'idle' | 'used',
    ...labels: string[]
  ) => database.pools.map((one): Reading => [one[member], one.pool, ...labels]);
  return [
    {
      name: 'service_queue_waiting',
      help: 'Inputs that wait for their batch.',
      labels: queue,
      read: perQueue((one) => one.waiting),
    },
    {
      name: 'service_queue_oldest_seconds',
      help: 'How long the first of them has waited.',
      labels: queue,
      of: 'max',
      read: perQueue((one) => one.oldest / 1000),
    },
    {
      name: 'service_queue_refused_total',
      help: 'Inputs rejected because the queue was full.',
      labels: queue,
      read: perQueue((one) => one.refused),
    },
    {
      name: 'db_client_connection_count',
      help: 'Connections to PostgreSQL.',
      labels: ['pool', 'state'],
      read: () => [...perPool('idle', 'idle'), ...perPool('used', 'used')],
    },
    {
      name: 'db_client_connection_max',
      help: 'Most connections to PostgreSQL.',
      labels: ['pool'],
      read: () => perPool('max'),
    },
    {
      name: 'db_client_connection_pending_requests',
      help: 'Statements waiting for a connection.',
      labels: ['pool'],
      read: () => perPool('pending'),
    },
    {
      name: 'service_dependency_up',
      help: '0 while the service cannot use it.',
      labels: ['dependency'],
      of: 'min',
      async read() {
        const readings: Reading[] = [
          [Number(await isUp(database)), 'postgresql'],
        ];
        for (const { dependencies = {} } of parts)
          for (const [name, { isUp }] of Object.entries(dependencies))
            readings.push([Number(isUp), name]);
        return readings;
      },
    },
  ];
}

function isUp(database: Database) {
  return withTimeout(pingTimeout, database.ping(), Unavailable.late).then(
    () => true,
    () => false,
  );
}

export function measureApp(app: FastifyInstance): Metric[] {
  let refused = 0;
  // Node's event for a connection beyond `maxConnections`.
  app.server.on('drop', () => {
    refused += 1;
  });
  return [
    {
      name: 'http_server_active_requests',
      help: 'HTTP requests in progress.',
      read: () => app.activeRequests.count,
    },
    {
      name: 'service_draining',
      help: '1 while the service shuts down.',
      of: 'max',
      read: () => Number(app.isDraining),
    },
    {
      name: 'service_connections',
      help: 'Open HTTP connections.',
      read: promisify(app.server.getConnections.bind(app.server)),
    },
    {
      name: 'service_connections_refused_total',
      help: 'Connections closed beyond the limit.',
      read: () => refused,
    },
    {
      name: 'service_subscriptions',
      help: 'Open subscriptions.',
      read: () => app.subscriptions.count,
    },
    {
      name: 'service_subscription_items_total',
      help: 'Items sent to subscriptions.',
      read: () => app.subscriptions.delivered,
    },
    {
      name: 'service_requests_shed_total',
      help: 'Requests refused: the event loop was full.',
      read: () => app.shedRequests,
    },
  ];
}
