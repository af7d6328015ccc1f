import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { StoreError } from '../../errors.ts';
import type { Once } from '../../storage/records/once.ts';

/** draft-ietf-httpapi-idempotency-key-header-07. */
export const idempotencyKey = 'idempotency-key';
export const longestKey = 255;

/** A string of structured fields (RFC 9651, section 3.3.3). */
const quoted = /^"((?:[ !\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;
const visible = /^[\x21-\x7e]+$/;

/**
 * @param operation the same on both faces
 * @param path of the field, where a request has several of this operation
 * @returns undefined when the request has no Idempotency-Key
 * @throws StoreError BAD_USER_INPUT
 */
export function onceOf({ headers, caller, call }: FastifyRequest, operation: string, path = ''): Once | undefined {
  const given = headers[idempotencyKey];
  if (given === undefined) return undefined;
  const key = keyIn(`${given}`);
  return {
    keyId: caller?.id ?? 0,
    operation,
    // No key has a line end in it.
    hash: hash('sha256', path === '' ? key : `${key}\n${path}`, 'buffer'),
    settled(isReplay) {
      call.isReplay = isReplay && call.isReplay !== false;
    },
  };
}

/** The quoted string of the draft, or the same bare, as many clients send it. @throws StoreError BAD_USER_INPUT */
function keyIn(text: string): string {
  const key = text.startsWith('"') ? quoted.exec(text)?.[1]?.replace(/\\(.)/g, '$1') : text;
  if (key !== undefined && key.length <= longestKey && visible.test(key)) return key;
  const message = `Idempotency-Key must be 1 to ${longestKey} visible ASCII characters, bare or as a quoted string.`;
  throw new StoreError('BAD_USER_INPUT', message);
}
