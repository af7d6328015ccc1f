import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Deadline, RequestTrace } from '../../deadline.ts';

export interface RequestCallOptions {
  /** Time limit from the arrival of a request. */
  milliseconds: number;
}

/** The deadline of one request, from its arrival or the last byte of its body, and what is noted for its log line. */
export class RequestCall implements Deadline {
  readonly #socket: Socket;
  readonly #options: RequestCallOptions;
  /** When the request came (`performance.now()`). */
  readonly arrived = performance.now();
  /** After how long (ms) its response began to stream; undefined when it has an end of its own. */
  streamedAfter: number | undefined;
  at: number;
  /** How many items have been read or written so far. */
  items = 0;
  /** The server that answered the last read, where there are several. */
  node: string | undefined;
  /** How long (ms) the request has waited for batches to leave, in all; undefined when it needed no database. */
  waited: number | undefined;
  /** With how many others, itself included, it shared its largest batch. */
  batch: number | undefined;
  /** True when all that the request asked for had been created at an earlier one; undefined when it had no key. */
  isReplay: boolean | undefined;
  /** GraphQL's operation: its name as the client gave it, and its root fields, each once. */
  operation: { name: string | undefined; fields: readonly string[] | undefined } | undefined;
  /** The code of the error that the response carries; the first of several. */
  code: string | undefined;
  /** When its GraphQL operation began (`performance.now()`), for those who watch; undefined when there is none. */
  operationBegan: number | undefined;
  trace: RequestTrace | undefined;

  constructor({ socket }: IncomingMessage, options: RequestCallOptions) {
    this.#socket = socket;
    this.#options = options;
    this.at = performance.now() + options.milliseconds;
  }

  /** The id of the trace that the request is part of; undefined when none is kept. */
  get traceId(): string | undefined {
    return this.trace?.request.spanContext().traceId;
  }

  get isOver(): boolean {
    return this.#socket.destroyed;
  }

  /** Restarts the clock when the body has arrived: the upload depends on the client, and has its own limit. */
  restart(): void {
    this.at = performance.now() + this.#options.milliseconds;
  }

  batched(waited: number, size: number): void {
    this.waited = (this.waited ?? 0) + waited;
    this.batch = Math.max(this.batch ?? 0, size);
  }

  servedBy(node: string): void {
    this.node = node;
  }

  count(items: number): void {
    this.items += items;
  }
}
