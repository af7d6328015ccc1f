import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { StoreError } from '../../errors.ts';
import { parseExactJson } from '../../storage/input/json.ts';

/** Parses JSON bodies of both APIs without losing a digit of an integer. */
export const jsonBody = fastifyPlugin(
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
  { name: 'json-body', dependencies: ['bearer'] },
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
