import type { onSendHookHandler, preValidationHookHandler, RouteOptions } from 'fastify';
import { StoreError } from '../../errors.ts';
import type { Once } from '../../storage/records/once.ts';
import { idempotencyKey, longestKey, onceOf } from './once.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The client's name for what the request does; undefined when it has none. */
    once: Once | undefined;
  }
  interface FastifyContextConfig {
    /** Takes `Idempotency-Key`: the handler passes `request.once` to the service. */
    isRepeatable?: boolean;
  }
}

/**
 * Reads `Idempotency-Key` for the routes that are repeatable. Other routes with a body refuse it: a client that sends one
 * relies on it.
 */
export function idempotencyHooks({ url, schema, config }: RouteOptions): {
  preValidation?: preValidationHookHandler;
  onSend?: onSendHookHandler;
} {
  if (!schema?.body) return {};
  const { operationId = url } = schema as { operationId?: string };
  return config?.isRepeatable ? { preValidation: read(operationId), onSend: announce } : { preValidation: refuse };
}

function read(operation: string): preValidationHookHandler {
  return (request, _reply, done) => {
    request.once = onceOf(request, operation);
    done();
  };
}

const refuse: preValidationHookHandler = ({ headers }, _reply, done) => {
  done(headers[idempotencyKey] === undefined ? undefined : notRepeatable());
};

const announce: onSendHookHandler = ({ call }, reply, _payload, done) => {
  if (call.isReplay) reply.header('idempotent-replayed', 'true');
  done();
};

/** The error for a key where nothing would come of it. */
export function notRepeatable(): StoreError {
  return new StoreError('BAD_USER_INPUT', 'This operation takes no Idempotency-Key: sent again, it happens again.');
}

/** What a repeatable route adds to its contract: headers of requests and of successes, and failures. */
export const idempotencyDescription = {
  request: {
    'Idempotency-Key': {
      type: 'string',
      description: `The client's own name for this creation, 1 to ${longestKey} visible ASCII characters, bare or as a quoted string: sent again under the same name, it is not carried out again, and answered as at first (draft-ietf-httpapi-idempotency-key-header).`,
    },
  },
  response: {
    'Idempotent-Replayed': { type: 'string', description: '`true` when an earlier request had created it.' },
  },
  failures: [
    {
      status: 409,
      code: 'IDEMPOTENCY_KEY_IN_USE',
      description: 'A request with the same Idempotency-Key is still under way.',
      message: 'A request with this Idempotency-Key is still under way; send it again shortly.',
      headers: { 'Retry-After': { type: 'string', description: 'In how many seconds to try again.' } },
    },
    {
      status: 422,
      code: 'IDEMPOTENCY_KEY_REUSED',
      description: 'The Idempotency-Key was used for another input.',
      message: 'This Idempotency-Key was used for another input; a new creation needs a new key.',
      headers: undefined,
    },
  ],
} as const;
