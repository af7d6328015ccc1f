import { hash } from 'node:crypto';
import type {
  FastifyRequest,
  onSendHookHandler,
  preValidationHookHandler,
  RouteOptions,
} from 'fastify';
import { badInput } from '../../errors.ts';
import { mayWrite } from '../keys/bearer.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Accepts `Idempotency-Key`. */
    isIdempotent?: boolean;
  }
}

/** draft-ietf-httpapi-idempotency-key-header-07. */
export const idempotencyHeader = 'idempotency-key';
/** In characters. */
export const longestKey = 255;

/** A string of structured fields, whose parameters count for nothing here. */
const quoted = /^"((?:[ !\x23-\x5b\x5d-\x7e]|\\["\\])*)"(?: *;[ -~]*)?$/;
const visible = /^[\x21-\x7e]+$/;

/**
 * The claim of a request with an `Idempotency-Key`; undefined without one.
 *
 * @param operation the same in REST and GraphQL
 * @param path path of the field, when a request has several fields of this
 *   operation
 * @throws StoreError BAD_USER_INPUT
 */
export function claimOf(
  { headers, call }: FastifyRequest,
  operation: string,
  path = '',
) {
  const given = headers[idempotencyHeader];
  if (given === undefined) return undefined;
  const { id = 0, tenant } = call.caller ?? {};
  const parts = [keyIn(`${given}`)];
  if (path !== '' || tenant !== undefined) parts.push(path);
  // A user may belong to several tenants, and sees the answers of this one.
  if (tenant !== undefined) parts.push(tenant);
  return {
    keyId: id,
    operation,
    // Key and path contain no line feed, so this is unambiguous.
    hash: hash('sha256', parts.join('\n'), 'buffer'),
  };
}

/**
 * Accepts the draft's quoted string, or a bare key, as many clients send it.
 * @throws StoreError BAD_USER_INPUT
 */
function keyIn(text: string) {
  const key = text.startsWith('"')
    ? quoted.exec(text)?.[1]?.replace(/\\(.)/g, '$1')
    : text;
  if (key !== undefined && key.length <= longestKey && visible.test(key))
    return key;
  const message = `Idempotency-Key must be 1 to ${longestKey} visible ASCII characters, bare or as a quoted string.`;
  throw badInput(message);
}

/**
 * The error for a key that the operation would ignore, because the client
 * relies on it.
 */
export function notIdempotent() {
  const message =
    'This operation takes no Idempotency-Key: a repeated request is carried out again.';
  return badInput(message);
}

/**
 * The error for a precondition: all entity tags here are weak, so none could
 * match (RFC 9110, section 13.1.1).
 */
const unmatched = () =>
  badInput('If-Match is not supported: send the version that you have read.');

/**
 * Reads the key for an idempotent route; other routes that write reject it, and
 * `If-Match`.
 */
export function idempotencyHooks({
  method,
  url,
  schema,
  config,
}: RouteOptions): {
  preValidation?: preValidationHookHandler;
  onSend?: onSendHookHandler;
} {
  if (config?.validatesItself || !mayWrite({ method })) return {};
  if (!config?.isIdempotent) {
    return {
      preValidation({ headers }, _reply, done) {
        if (headers[idempotencyHeader] !== undefined)
          return done(notIdempotent());
        if (headers['if-match'] !== undefined) return done(unmatched());
        done();
      },
    };
  }
  const { operationId = url } = schema ?? {};
  return {
    preValidation(request, _reply, done) {
      request.call.claim = claimOf(request, operationId);
      done();
    },
    onSend({ call }, reply, _payload, done) {
      if (call.isReplay) reply.header('idempotent-replayed', 'true');
      done();
    },
  };
}
