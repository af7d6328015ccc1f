/** What a metric is. Prometheus' text has it in its HELP and TYPE lines. */
export interface MetricDescription {
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  labels: readonly string[];
  /** Upper limits of a histogram's buckets. */
  buckets?: readonly number[];
  /** How the values of several processes become one; the sum when absent. */
  aggregator?: 'sum' | 'first' | 'min' | 'max';
}

/** OpenTelemetry's advice for HTTP, in seconds. */
const ofHttp = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Most answers take less than its first limit. */
const ofOperations = [0.001, 0.0025, ...ofHttp];
const ofDatabase = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const ofGc = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];

const batch = ['db_collection_name', 'db_operation_name'] as const;
const queue = ['collection', 'operation'] as const;

/**
 * Every metric, by its name in Prometheus' form: OpenTelemetry's stable name where there is one. `docs/observe.md`
 * explains them, and `operations/` names them; tests hold both to this list. No value of a label ever comes from what a
 * client sent.
 */
export const catalogue = {
  http_server_request_duration_seconds: {
    type: 'histogram',
    help: 'Duration of HTTP requests, of streams until they begin; without a status code where the client has gone before it had the answer.',
    labels: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets: ofHttp,
  },
  http_server_active_requests: { type: 'gauge', help: 'HTTP requests under way.', labels: [] },
  http_server_aborted_requests_total: {
    type: 'counter',
    help: 'HTTP requests whose client has gone before it had the answer.',
    labels: [],
  },
  animal_store_operations_total: {
    type: 'counter',
    help: 'Operations of both APIs (of GraphQL, each root field) by error code; OK without one.',
    labels: ['face', 'operation', 'code'],
  },
  animal_store_operation_duration_seconds: {
    type: 'histogram',
    help: 'Duration of operations; of a root field of GraphQL, that of its whole operation; of a subscription until it begins.',
    labels: ['face', 'operation'],
    buckets: ofOperations,
  },
  db_client_operation_duration_seconds: {
    type: 'histogram',
    help: 'Duration of round trips to the database that serve a batch.',
    labels: [...batch, 'error_type'],
    buckets: ofDatabase,
  },
  db_client_operation_batch_size: {
    type: 'histogram',
    help: 'How many inputs such a round trip serves.',
    labels: batch,
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  },
  animal_store_queue_waiting: { type: 'gauge', help: 'Inputs that wait for their batch to leave.', labels: queue },
  animal_store_queue_oldest_seconds: {
    type: 'gauge',
    help: 'How long the first of them has waited.',
    labels: queue,
    aggregator: 'max',
  },
  animal_store_queue_refused_total: {
    type: 'counter',
    help: 'Inputs rejected at once, because too much waited.',
    labels: queue,
  },
  db_client_connection_count: {
    type: 'gauge',
    help: 'Connections to PostgreSQL.',
    labels: ['pool', 'state'],
  },
  db_client_connection_max: { type: 'gauge', help: 'Connections to PostgreSQL at most.', labels: ['pool'] },
  db_client_connection_pending_requests: {
    type: 'gauge',
    help: 'Statements that wait for a connection.',
    labels: ['pool'],
  },
  animal_store_read_node_reads_total: {
    type: 'counter',
    help: 'Reads sent to each server, where there are read nodes.',
    labels: ['node'],
  },
  animal_store_database_up: {
    type: 'gauge',
    help: '1 when the database has answered within a second.',
    labels: [],
    aggregator: 'min',
  },
  animal_store_key_lookups_total: {
    type: 'counter',
    help: 'Look-ups of API keys in the database.',
    labels: ['result'],
  },
  animal_store_auth_refusals_total: {
    type: 'counter',
    help: 'Requests refused for their key: none or a wrong one, one without the scope, too many wrong ones.',
    labels: ['code'],
  },
  animal_store_quota_refusals_total: {
    type: 'counter',
    help: 'Operations refused because the key has used its quota.',
    labels: [],
  },
  animal_store_deprecated_calls_total: {
    type: 'counter',
    help: 'Calls of deprecated operations, by the name that the operator gave the key.',
    labels: ['operation', 'key'],
  },
  animal_store_idempotent_replays_total: {
    type: 'counter',
    help: 'Responses that repeated an earlier one for its idempotency key.',
    labels: [],
  },
  animal_store_subscriptions: { type: 'gauge', help: 'Open subscriptions.', labels: [] },
  animal_store_subscription_items_total: { type: 'counter', help: 'Items sent to subscriptions.', labels: [] },
  animal_store_connections: { type: 'gauge', help: 'Open HTTP connections.', labels: [] },
  animal_store_connections_refused_total: {
    type: 'counter',
    help: 'HTTP connections closed at once, because there were too many.',
    labels: [],
  },
  animal_store_requests_shed_total: {
    type: 'counter',
    help: 'HTTP requests refused because the event loop was full.',
    labels: [],
  },
  animal_store_log_lines_dropped_total: {
    type: 'counter',
    help: 'Log lines that could not be written.',
    labels: [],
  },
  animal_store_draining: {
    type: 'gauge',
    help: '1 when the service is about to end.',
    labels: [],
    aggregator: 'max',
  },
  animal_store_workers_up: { type: 'gauge', help: 'Processes that serve.', labels: [] },
  animal_store_workers_silent: {
    type: 'gauge',
    help: 'Workers that did not answer this scrape: their counters are those of the last one.',
    labels: [],
  },
  animal_store_info: {
    type: 'gauge',
    help: 'What runs here; always 1.',
    labels: ['version', 'node', 'database'],
    aggregator: 'max',
  },
  nodejs_eventloop_delay_seconds: {
    type: 'gauge',
    help: 'How late the event loop was since the last scrape (0.5, 0.99, and 1 for the worst); of several processes the worst.',
    labels: ['quantile'],
    aggregator: 'max',
  },
  nodejs_eventloop_utilization_ratio: {
    type: 'gauge',
    help: 'How much of the time since the last scrape the event loop was busy; of several processes the busiest.',
    labels: [],
    aggregator: 'max',
  },
  v8js_gc_duration_seconds: {
    type: 'histogram',
    help: 'Pauses of the garbage collector.',
    labels: ['type'],
    buckets: ofGc,
  },
  nodejs_heap_size_used_bytes: { type: 'gauge', help: 'Heap in use.', labels: [] },
  process_resident_memory_bytes: { type: 'gauge', help: 'Resident memory.', labels: [] },
  process_cpu_seconds_total: { type: 'counter', help: 'CPU time, user and system.', labels: [] },
  process_open_fds: {
    type: 'gauge',
    help: 'Open file descriptors; of several processes the most.',
    labels: [],
    aggregator: 'max',
  },
  process_max_fds: {
    type: 'gauge',
    help: 'File descriptors that a process may open.',
    labels: [],
    aggregator: 'min',
  },
  process_start_time_seconds: {
    type: 'gauge',
    help: 'When the process started, in Unix time.',
    labels: [],
    aggregator: 'min',
  },
} satisfies Record<string, MetricDescription>;

export type MetricName = keyof typeof catalogue;
