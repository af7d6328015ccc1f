import type { FastifyInstance } from 'fastify';
import {
  headerSchema,
  type Response,
} from '../../api/rest/documented-responses.ts';

const headers = {
  RateLimit: headerSchema(
    'What is left of the quota, and when it is renewed; absent if nothing was charged.',
  ),
  'RateLimit-Policy': headerSchema(
    'The quota (draft-ietf-httpapi-ratelimit-headers-11).',
  ),
};
const description =
  'The key has used up its quota, or too many wrong keys came from this address.';
const usedUp = {
  code: 'TOO_MANY_REQUESTS',
  message: 'This key has used its 6000 units of this minute.',
  status: 429,
};
/** Nothing is charged before the checks of the key and the body's arrival. */
const uncharged = ['401', '403', '408', '413', '415'];

/** Adds the quota to the contract. */
export function describeQuota(app: FastifyInstance) {
  app.addHook('onRoute', ({ schema, config }) => {
    const responses = Object.entries(schema?.response ?? {});
    for (const [status, described] of responses as [string, Response][]) {
      if (status === '429') {
        described.description = description;
        Object.assign(described.content?.['application/json'] ?? {}, {
          example: usedUp,
        });
      }
      if (!config?.isUnmetered && !uncharged.includes(status))
        described.headers = { ...described.headers, ...headers };
    }
  });
}
