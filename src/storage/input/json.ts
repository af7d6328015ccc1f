import type { IncomingHttpHeaders } from 'node:http';
import { inspect } from 'node:util';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { parse } from 'secure-json-parse';
import { StoreError } from '../../errors.ts';

/** Parses JSON bodies of both APIs without losing a digit of an integer. */
export const exactJson = fastifyPlugin(
  async (app: FastifyInstance) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser(
      'application/json',
      { parseAs: 'buffer' },
      async ({ headers, call }: FastifyRequest, body: Buffer) => {
        call.restart();
        assertPlainUtf8(headers);
        return body.length === 0 ? undefined : parseExactJson(body);
      },
    );
  },
  { name: 'exact-json', dependencies: ['bearer'] },
);

const foreignCharset = /;\s*charset\s*=(?!\s*"?utf-?8"?\s*(?:;|$))/i;

/** @throws StoreError UNSUPPORTED_MEDIA_TYPE */
function assertPlainUtf8(headers: IncomingHttpHeaders): void {
  if (foreignCharset.test(headers['content-type'] ?? '')) {
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', 'The body must be UTF-8, the one charset of JSON.');
  }
  const isCompressed = !/^(?:identity)?$/i.test(headers['content-encoding'] ?? '');
  if (isCompressed || !/^(?:chunked)?$/i.test(headers['transfer-encoding'] ?? '')) {
    throw new StoreError(
      'UNSUPPORTED_MEDIA_TYPE',
      'The body must not be compressed: send it without Content-Encoding.',
      {
        // RFC 9110 section 12.5.3
        headers: { 'accept-encoding': 'identity' },
      },
    );
  }
}

type Reviver = (key: string, value: unknown) => unknown;
const withoutPrototypes = { protoAction: 'remove', constructorAction: 'remove' } as const;

// Only text with a long run of digits or an exponent can contain a number that a double would change.
const suspect = /[\d.]{16}|\d[eE]/;
// The parser skips one byte order mark; the decoder must not skip another.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses UTF-8 JSON (RFC 8259; a byte order mark is skipped). Integers beyond 2^53 become `bigint`, all other numbers
 * `number`; a number with an exponent or a fraction that would lose digits as a double becomes an `InexactNumber`. The
 * last of duplicate members counts. Members that would pollute prototypes are ignored, like all unknown members.
 *
 * @param subject of the error message.
 * @throws StoreError BAD_USER_INPUT: not UTF-8 or not JSON.
 */
export function parseExactJson(body: Buffer, subject = 'The body is'): unknown {
  try {
    const text = utf8.decode(body);
    return parse(text, suspect.test(text) ? (exactNumber as Reviver) : undefined, withoutPrototypes);
  } catch (cause) {
    throw new StoreError('BAD_USER_INPUT', `${subject} not acceptable JSON: ${reason(cause)}.`, { cause });
  }
}

/** A number that a double would change: no rule takes it for one, and messages show it as the client wrote it. */
class InexactNumber {
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  toJSON(): string {
    return this.#source;
  }

  [inspect.custom](): string {
    return this.#source;
  }
}

function exactNumber(_key: string, value: unknown, context?: { source: string }): unknown {
  if (typeof value !== 'number' || !context) return value;
  if (!Number.isFinite(value)) return new InexactNumber(context.source);
  if (!Number.isInteger(value)) return value;
  const whole = context.source.replace(/\.0*$/, '');
  if (/^-?\d+$/.test(whole)) return Number.isSafeInteger(value) ? value : BigInt(whole);
  // With an exponent or a fraction: a double keeps fifteen digits; with more, it may or may not be an integer.
  const digits = whole.split(/[eE]/, 1)[0]?.replace(/\D/g, '') ?? '';
  const isExact = digits.length <= 15 && (value !== 0 || /^0*$/.test(digits));
  return isExact && Number.isSafeInteger(value) ? value : new InexactNumber(context.source);
}

function reason(cause: unknown): string {
  if (cause instanceof SyntaxError) return cause.message.replace(/\.$/, '');
  if ((cause as NodeJS.ErrnoException).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'it is not valid UTF-8';
  return 'it is nested too deeply';
}
