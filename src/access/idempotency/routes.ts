import type { onSendHookHandler, preValidationHookHandler } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { failure } from '../../api/rest/responses.ts';
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
 * Reads and documents `Idempotency-Key` for the routes that are repeatable. Other routes that write refuse it: a client
 * that sends one relies on it. Register it before the routes.
 */
export const repeatableRoutes = fastifyPlugin(
  async (app) => {
    app.decorateRequest('once', undefined);
    app.addHook('onRoute', (route) => {
      const { schema, config } = route;
      if (!schema?.body) return;
      const { operationId = route.url } = schema as { operationId?: string };
      route.preValidation = [route.preValidation ?? [], config?.isRepeatable ? read(operationId) : refuse].flat();
      if (!config?.isRepeatable) return;
      route.onSend = [route.onSend ?? [], announce].flat();
      route.schema = { ...schema, headers, response: documented(schema.response as Responses) };
    });
  },
  { name: 'repeatable-routes', dependencies: ['meter', 'documented-failures'] },
);

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

const headers = {
  type: 'object',
  properties: {
    'Idempotency-Key': {
      type: 'string',
      description: `The client's own name for this creation, 1 to ${longestKey} visible ASCII characters, bare or as a quoted string: sent again under the same name, it is not carried out again, and answered as at first (draft-ietf-httpapi-idempotency-key-header).`,
    },
  },
};

type Responses = Record<string, { headers?: object }>;

const replayed = {
  'Idempotent-Replayed': { type: 'string', description: '`true` when an earlier request had created it.' },
};

function documented(responses: Responses): Responses {
  const created = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([status, response]) => [status, { ...response, headers: { ...response.headers, ...replayed } }]);
  return {
    ...responses,
    ...Object.fromEntries(created),
    409: failure(
      'IDEMPOTENCY_KEY_IN_USE',
      'A request with the same Idempotency-Key is still under way.',
      'A request with this Idempotency-Key is still under way; send it again shortly.',
      { 'Retry-After': { type: 'string', description: 'In how many seconds to try again.' } },
    ),
    422: failure(
      'IDEMPOTENCY_KEY_REUSED',
      'The Idempotency-Key was used for another input.',
      'This Idempotency-Key was used for another input; a new creation needs a new key.',
    ),
  };
}
