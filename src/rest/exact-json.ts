import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { parse } from 'secure-json-parse';
import { StoreError } from '../errors.ts';

/** Parses JSON bodies of both faces so that no digit of an integer is lost. */
export const exactJson = fastifyPlugin(async (app: FastifyInstance) => {
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
});

const foreignCharset = /;\s*charset\s*=(?!\s*"?utf-?8"?\s*(?:;|$))/i;

/** @throws StoreError UNSUPPORTED_MEDIA_TYPE */
function assertPlainUtf8(headers: IncomingHttpHeaders): void {
  if (foreignCharset.test(headers['content-type'] ?? '')) {
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', 'The body must be UTF-8.');
  }
  const isCompressed = !/^(?:identity)?$/i.test(headers['content-encoding'] ?? '');
  if (isCompressed || !/^(?:chunked)?$/i.test(headers['transfer-encoding'] ?? '')) {
    throw new StoreError('UNSUPPORTED_MEDIA_TYPE', 'The body must not be compressed.', {
      // RFC 9110 section 12.5.3
      headers: { 'accept-encoding': 'identity' },
    });
  }
}

type Reviver = (key: string, value: unknown) => unknown;
const withoutPrototypes = { protoAction: 'remove', constructorAction: 'remove' } as const;

// Only text with a long run of digits or an exponent can hold a number that a double would change.
const suspect = /\d{16}|\d[eE]/;
// The parser skips one byte order mark; the decoder would skip another.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses UTF-8 JSON (RFC 8259; a byte order mark is skipped). Integers beyond 2^53 come out as `bigint`, all other
 * numbers as `number`; a fraction that a double would round to a whole number comes out as NaN, so that no rule takes
 * it for an integer. Of duplicate members the last one counts. Members that would poison prototypes are ignored, as all
 * that nobody asked for.
 *
 * @param subject of the message that tells what is wrong.
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

function exactNumber(_key: string, value: unknown, context?: { source: string }): unknown {
  if (typeof value !== 'number' || !context) return value;
  if (Number.isInteger(value) && !/[.eE]/.test(context.source)) {
    return Number.isSafeInteger(value) ? value : BigInt(context.source);
  }
  const exact = integerFromNotation(context.source);
  if (exact === undefined) return Number.isInteger(value) ? Number.NaN : value;
  return Number.isSafeInteger(Number(exact)) ? Number(exact) : exact;
}

/** The integer that a JSON number with a fraction or an exponent denotes, if it is one of at most 40 digits. */
function integerFromNotation(source: string): bigint | undefined {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? [];
  const significant = withoutTrailingZeros(whole + fraction);
  if (/^0*$/.test(significant)) return 0n;
  const zeros = Number(exponent) - fraction.length + (whole.length + fraction.length - significant.length);
  if (zeros < 0 || significant.length + zeros > 40) return undefined;
  return BigInt(`${sign}${significant}${'0'.repeat(zeros)}`);
}

// Not by /0+$/: it would look at every run of zeros from each of its zeros on, for minutes in a body of zeros.
function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}

function reason(cause: unknown): string {
  if (cause instanceof SyntaxError) return cause.message.replace(/\.$/, '');
  if ((cause as NodeJS.ErrnoException).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'it is not valid UTF-8';
  return 'it is nested too deeply';
}
