import compress from '@fastify/compress';
import etag from '@fastify/etag';
import pressure from '@fastify/under-pressure';
import { Counter, Histogram } from '@prometheus-io/client';

const seconds = new Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time per request.',
  labelNames: ['method', 'route', 'status'],
});
const deprecatedCalls = new Counter({
  name: 'deprecated_calls_total',
  help: 'Calls of deprecated operations.',
  labelNames: ['route', 'key'],
});

/** A page that is full has a link to the next one, as RFC 8288 writes it. */
function linkNext(request, reply, page) {
  if (!Array.isArray(page) || page.length < request.query.limit) return;
  const url = new URL(request.url, `http://${request.host}`);
  url.searchParams.set('after', page.at(-1).id);
  reply.header('link', `<${url}>; rel="next"`);
}

function deprecate(request, reply) {
  const { url } = request.routeOptions;
  if (url !== '/v1/pets/:petId') return;
  deprecatedCalls.inc({ route: url, key: request.keyId });
  reply.header('deprecation', '@1795132800');
  reply.header('sunset', 'Thu, 05 Dec 2030 00:00:00 GMT');
  const successor = `http://${request.host}/v1/pets`;
  reply.header('link', `<${successor}>; rel="successor-version"`);
}

/**
 * What this service's answers have beyond the duties, by Fastify's own plugins:
 * entity tags and 304, compression, refusals under pressure, links of pages,
 * notices of deprecation, a histogram of durations.
 */
export async function withPlugins(app) {
  await app.register(pressure, { maxEventLoopDelay: 1000 });
  await app.register(compress);
  await app.register(etag, { weak: true });
  app.addHook('preSerialization', (request, reply, payload, done) => {
    if (request.method === 'GET') {
      reply.header('cache-control', 'private, no-cache');
      reply.header('vary', 'accept-encoding');
      linkNext(request, reply, payload);
      deprecate(request, reply);
    }
    done(null, payload);
  });
  app.addHook('onResponse', (request, reply, done) => {
    const { method, routeOptions } = request;
    const status = reply.statusCode;
    const labels = { method, route: routeOptions.url, status };
    seconds.observe(labels, reply.elapsedTime / 1000);
    done();
  });
}
