import { type IncomingHttpHeaders, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import {
  brotliDecompressSync,
  gunzipSync,
  zstdDecompressSync,
} from 'node:zlib';

export interface HttpRequest {
  method?: string;
  /** Sent unchanged: neither normalised nor encoded. */
  path: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer | undefined;
}

export interface HttpResponse {
  status: number;
  headers: IncomingHttpHeaders;
  /** Decompressed. */
  text: string;
}

const decoders: Record<string, (bytes: Buffer) => Buffer> = {
  zstd: zstdDecompressSync,
  br: brotliDecompressSync,
  gzip: gunzipSync,
};

/** The decoded text of a body; empty for HEAD, even with a content coding. */
export function textIn(bytes: Buffer, coding = 'none'): string {
  const decode = bytes.length > 0 ? decoders[coding] : undefined;
  return (decode?.(bytes) ?? bytes).toString('utf8');
}

/** Sends one request over a real connection. */
export function send(
  origin: string,
  { method = 'GET', path, headers = {}, body }: HttpRequest,
): Promise<HttpResponse> {
  const { hostname, port } = new URL(origin);
  // Set in advance, because Node sends the headers at once when Expect is among
  // them.
  const length =
    body === undefined
      ? {}
      : { 'content-length': `${Buffer.byteLength(body)}` };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { hostname, port, method, path, headers: { ...length, ...headers } },
      (incoming) => {
        const { statusCode: status = 0, headers } = incoming;
        buffer(incoming).then(
          (bytes) =>
            resolve({
              status,
              headers,
              text: textIn(bytes, headers['content-encoding']),
            }),
          reject,
        );
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** Writes JSON with exact integers, `bigint`s as JSON integers. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, member) =>
    typeof member === 'bigint' ? rawJson(`${member}`) : member,
  );
}

/**
 * Reads JSON with integers beyond 2^53 as `bigint`. Deliberately not the
 * service's own parser.
 */
export function fromJson(text: string): unknown {
  const reviver = (
    _key: string,
    value: unknown,
    context?: { source: string },
  ) =>
    typeof value === 'number' &&
    !Number.isSafeInteger(value) &&
    /^-?\d+$/.test(context?.source ?? '')
      ? BigInt(context?.source ?? 0)
      : value;
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
}

// ECMAScript's JSON.rawJSON, which TypeScript's library does not declare yet.
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;
