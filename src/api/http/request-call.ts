import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Call, CallTrace } from '../../call.ts';
import { StoreError } from '../../errors.ts';
import type { InFlight } from './in-flight.ts';

export interface RequestCallOptions {
  /** Time limit from the arrival of a request. */
  milliseconds: number;
  /** Size limit of its response. */
  maxBytes: number;
  /** All responses that are being created or sent. */
  answers: InFlight;
}

/** The deadline of one request, from its arrival or the last byte of its body, and the size of its response. */
export class RequestCall implements Call {
  readonly #socket: Socket;
  readonly #response: ServerResponse;
  readonly #options: RequestCallOptions;
  #bytes = 0;
  #held = 0;
  /** When the request came (`performance.now()`). */
  readonly arrived = performance.now();
  /** After how long (ms) its response began to stream; undefined when it has an end of its own. */
  streamedAfter: number | undefined;
  deadline: number;
  refusal: StoreError | undefined;
  /** How many items have been read or written so far. */
  items = 0;
  /** How many times the response may repeat what is read for it. */
  copies = 1;
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
  trace: CallTrace | undefined;

  constructor({ socket }: IncomingMessage, response: ServerResponse, options: RequestCallOptions) {
    this.#socket = socket;
    this.#response = response;
    this.#options = options;
    this.deadline = performance.now() + options.milliseconds;
  }

  /** The id of the trace that the request is part of; undefined when none is kept. */
  get traceId(): string | undefined {
    return this.trace?.request.spanContext().traceId;
  }

  get isOver(): boolean {
    return this.#socket.destroyed || this.refusal !== undefined;
  }

  /** Restarts the clock when the body has arrived: the upload depends on the client, and has its own limit. */
  restart(): void {
    this.deadline = performance.now() + this.#options.milliseconds;
  }

  batched(waited: number, size: number): void {
    this.waited = (this.waited ?? 0) + waited;
    this.batch = Math.max(this.batch ?? 0, size);
  }

  servedBy(node: string): void {
    this.node = node;
  }

  spend(items: number, bytes: number): void {
    const { maxBytes, answers } = this.#options;
    this.#bytes += bytes * this.copies;
    if (this.#bytes > maxBytes) {
      const message = `What is read for this answer takes more than ${maxBytes} bytes; ask for fewer items at a time.`;
      this.refusal = new StoreError('BAD_USER_INPUT', message);
      throw this.refusal;
    }
    this.items += items;
    this.#held += answers.hold(this.#bytes - this.#held, this.#response);
  }
}
