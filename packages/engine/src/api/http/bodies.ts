import type { IncomingHttpHeaders } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import { parseExactJson } from '@animal-store/exact-json';
import type {
  FastifyInstance,
  FastifyRequest,
  preParsingHookHandler,
} from 'fastify';
import { badInput, orError, StoreError } from '../../errors.ts';
import { SharedBudget } from '../../shared-budget.ts';
import { holderOf, largeBodyBytes, tooMany } from './lifecycle.ts';
import { partsOf } from './negotiation.ts';
import { areTiny, smallPiece } from './pieces.ts';

// The bodies of requests.

/** Parses the JSON bodies of both APIs with exact integers. */
export function parseJsonBodies(app: FastifyInstance) {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    (request, body, done) => {
      request.call.restartDeadline();
      app.turns.take(request, () => {
        try {
          assertPlainUtf8(request.headers);
          done(null, body.length === 0 ? undefined : parseJson(body));
        } catch (error) {
          done(error as Error);
        }
      });
    },
  );
}

/**
 * @param subject of the error message
 * @throws StoreError BAD_USER_INPUT: not UTF-8 or not JSON
 */
export function parseJson(body: Buffer, subject = 'The body is') {
  try {
    return parseExactJson(body);
  } catch (cause) {
    const { message } = cause as Error;
    throw badInput(`${subject} not acceptable JSON: ${message}.`, cause);
  }
}

/** A parameter of `Content-Type` that names another charset than UTF-8. */
const otherCharset = /^charset\s*=(?!\s*"?(?:utf-?8)?"?$)/i;
const noCodings = /^(?:identity\b|[\s,])*$/i;
const noTransferCodings = /^(?:chunked)?$/i;

/** @throws StoreError UNSUPPORTED_MEDIA_TYPE */
function assertPlainUtf8(headers: IncomingHttpHeaders) {
  const {
    'content-type': type = '',
    'content-encoding': codings = '',
    'transfer-encoding': transferCodings = '',
  } = headers;
  const mayBeOther = /charset/i.test(type);
  if (mayBeOther && partsOf(type).some((part) => otherCharset.test(part))) {
    const message = 'The body must be UTF-8, the one charset of JSON.';
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', message);
  }
  if (noCodings.test(codings) && noTransferCodings.test(transferCodings))
    return;
  const message =
    'The body must not be compressed: send it without Content-Encoding.';
  // RFC 9110 section 12.5.3
  throw new StoreError('UNSUPPORTED_MEDIA_TYPE', message, {
    headers: { 'accept-encoding': 'identity' },
  });
}

/**
 * Bounds large bodies while they arrive. Unauthenticated requests are rejected
 * before.
 *
 * @param bodyLimit in bytes
 */
export function boundBodies(bodyLimit: number): preParsingHookHandler {
  const budget = new SharedBudget(64 * bodyLimit);
  return (request, reply, payload, done) => {
    const bytes = bytesOf(request);
    if (bytes <= largeBodyBytes) return done(null, payload);
    const hold = () => {
      const holder = holderOf(request);
      if (!budget.take(holder, bytes)) throw tooMany('bodies');
      reply.raw.once('close', () => budget.add(holder, -bytes));
    };
    const body = counted(payload, hold);
    // Fastify removes its listeners when it rejects the body.
    body.on('error', () => undefined);
    done(null, body);
  };
}

/** Of its body. A chunked one counts with its maximum size. */
export function bytesOf(request: FastifyRequest) {
  const { 'content-length': length } = request.headers;
  return Number(length ?? request.routeOptions.bodyLimit);
}

/** The connection ends, because Node would go on to parse its chunks. */
function tooManyPieces() {
  const message = `The body comes in too many chunks: send at least ${smallPiece} bytes in each.`;
  const headers = { connection: 'close' };
  return new StoreError('BAD_USER_INPUT', message, { headers });
}

/**
 * Passes the bytes on, each chunk by itself, as Node has read it.
 *
 * @param onLarge called when they exceed the small size
 * @returns a stream that fails with BAD_USER_INPUT for many tiny chunks
 */
function counted(payload: Readable, onLarge: () => void) {
  let pieces = 0;
  let bytes = 0;
  const count = (chunk: Buffer) => {
    const wasSmall = bytes <= largeBodyBytes;
    pieces += 1;
    bytes += chunk.length;
    if (areTiny(pieces, bytes)) throw tooManyPieces();
    if (wasSmall && bytes > largeBodyBytes) onLarge();
    return chunk;
  };
  const body = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const passed = orError(() => count(chunk));
      if (passed instanceof Error) done(passed);
      else done(null, passed);
    },
  });
  // An end of this stream must not destroy the connection, which the response
  // needs.
  payload.on('error', (error) => body.destroy(error));
  return payload.pipe(body);
}
