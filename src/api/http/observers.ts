import type { FastifyReply, FastifyRequest } from 'fastify';

/** Watches requests: the log, metrics, traces. Each of them sees every request once. It is quick, and does not throw. */
export interface RequestObserver {
  /** A request has arrived. Its route is known, its caller is not yet. */
  began?(request: FastifyRequest): void;
  /** All of its response has been handed to the system, or its connection is closed. */
  ended(request: FastifyRequest, reply: FastifyReply, end: RequestEnd): void;
}

export interface RequestEnd {
  /** Milliseconds since the arrival. */
  milliseconds: number;
  /** False when the client has gone before it had the whole response. */
  isAnswered: boolean;
}
