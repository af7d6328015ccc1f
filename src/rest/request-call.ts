import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Call } from '../call.ts';
import { StoreError } from '../errors.ts';
import type { InFlight } from './in-flight.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** How long whatever is done for this request may take, and how much its answer may hold. */
    call: RequestCall;
  }
}

export interface RequestCallOptions {
  /** From the arrival of a request. */
  milliseconds: number;
  /** Of its answer. */
  maxBytes: number;
  /** All answers that are being made or sent. */
  answers: InFlight;
}

/** One request's time, from its arrival or from that of the last byte of its body, and the size of its answer. */
export class RequestCall implements Call {
  readonly #socket: Socket;
  readonly #response: ServerResponse;
  readonly #options: RequestCallOptions;
  #bytes = 0;
  #held = 0;
  deadline: number;
  refusal: StoreError | undefined;
  /** How many times the answer may repeat what is read for it. */
  copies = 1;

  constructor({ socket }: IncomingMessage, response: ServerResponse, options: RequestCallOptions) {
    this.#socket = socket;
    this.#response = response;
    this.#options = options;
    this.deadline = performance.now() + options.milliseconds;
  }

  get isOver(): boolean {
    return this.#socket.destroyed || this.refusal !== undefined;
  }

  /** The body has arrived: how long that took is the client's affair, and has a limit of its own. */
  restart(): void {
    this.deadline = performance.now() + this.#options.milliseconds;
  }

  spend(bytes: number): void {
    const { maxBytes, answers } = this.#options;
    this.#bytes += bytes * this.copies;
    if (this.#bytes > maxBytes) {
      const message = `What is read for this answer takes more than ${maxBytes} bytes; ask for fewer animals at a time.`;
      this.refusal = new StoreError('BAD_USER_INPUT', message);
      throw this.refusal;
    }
    this.#held += answers.hold(this.#bytes - this.#held, this.#response);
  }
}

/** Adds `request.call`. Register it before whatever looks up or waits. */
export const requestCall = fastifyPlugin<RequestCallOptions>(async (app: FastifyInstance, options) => {
  app.decorateRequest('call', null as never);
  app.addHook('onRequest', (request, reply, done) => {
    request.call = new RequestCall(request.raw, reply.raw, options);
    done();
  });
});
