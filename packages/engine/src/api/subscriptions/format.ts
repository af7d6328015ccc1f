/** Identifies a result in its list, so that a client can continue after it. */
type Position = string | number | bigint;

/** The format of a stream of results. Results and errors are JSON. */
export interface StreamFormat {
  readonly mediaType: string;
  /**
   * The first bytes.
   *
   * @param position continues the subscription before its first result
   */
  begin(position: Position): string;
  /** @param id continues the subscription after this result */
  next(result: string, id?: Position): string;
  /** An error that ends the stream. */
  fail(errors: string): string;
  /** Keeps proxies from closing a silent connection. */
  readonly heartbeat: string;
  readonly complete: string;
}

const nextEvent = (result: string, id?: Position) =>
  `event: next\n${id === undefined ? '' : `id: ${id}\n`}data: ${result}\n\n`;

/**
 * GraphQL over server-sent events, distinct connections mode (graphql-sse,
 * PROTOCOL.md).
 */
export const serverSentEvents: StreamFormat = {
  mediaType: 'text/event-stream; charset=utf-8',
  // An id without an event: a browser only stores it, and sends it as
  // `Last-Event-ID`.
  begin: (position) => `id: ${position}\n\n`,
  next: nextEvent,
  fail: (errors) => nextEvent(`{"errors":${errors}}`),
  heartbeat: ':\n\n',
  // `EventSource` ignores an event without a data line.
  complete: 'event: complete\ndata:\n\n',
};

/**
 * The delimiter follows each part immediately, because clients parse a part
 * when they read the next delimiter.
 */
const part = (json: string) =>
  `\r\nContent-Type: application/json\r\n\r\n${json}\r\n--graphql`;

/**
 * GraphQL subscriptions over multipart HTTP, version 1.0 of Apollo's protocol:
 * Apollo Client's own link, Sandbox and routers speak it. It has no ids: a
 * client continues with the argument `after`.
 */
export const multipart: StreamFormat = {
  mediaType: 'multipart/mixed; boundary="graphql"; subscriptionSpec="1.0"',
  begin: () => `\r\n--graphql${part('{}')}`,
  next: (result) => part(`{"payload":${result}}`),
  fail: (errors) => part(`{"payload":null,"errors":${errors}}`),
  heartbeat: part('{}'),
  complete: '--\r\n',
};

/**
 * Headers of the response. Intermediaries must not store, compress or buffer
 * (nginx) a stream.
 */
export const streamHeaders = {
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};
