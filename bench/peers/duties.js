import { createHash, randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import { pool } from './pet.statements.js';

function hashOf(key) {
  return createHash('sha256').update(key).digest('hex');
}

/** Caches the id of each key for a second. */
const cachedKeys = new Map();

async function idOf(key) {
  const { rows } = await pool.query({
    name: 'find_key',
    text: 'select id from peer_key where hash = $1',
    values: [hashOf(key)],
  });
  const id = rows[0]?.id;
  cachedKeys.set(key, { id, until: Date.now() + 1000 });
  return id;
}

const headers = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
};

function refuse(reply) {
  reply.code(401).header('www-authenticate', 'Bearer');
  reply.send({
    code: 'UNAUTHENTICATED',
    message: 'There is no valid API key.',
    status: 401,
  });
}

/**
 * A server with the duties of a service: API keys, a log line per request,
 * request ids, security headers.
 */
export async function withDuties() {
  await pool.query(
    'create table if not exists peer_key (id serial primary key, hash text not null unique)',
  );
  await pool.query(
    'insert into peer_key (hash) values ($1) on conflict do nothing',
    [hashOf(process.env.BENCH_KEY)],
  );
  const app = Fastify({
    logger: { level: 'info', base: null },
    disableRequestLogging: true,
    genReqId: () => randomUUID(),
  });
  app.decorateRequest('keyId', 0);
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(headers).header('x-request-id', request.id);
    const [, key] =
      /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    const cached = cachedKeys.get(key);
    const admit = (id) => {
      request.keyId = id;
      if (id) done();
      else refuse(reply);
    };
    if (cached && cached.until > Date.now()) admit(cached.id);
    else if (key) idOf(key).then(admit, done);
    else refuse(reply);
  });
  app.addHook('onResponse', (request, reply, done) => {
    const req = { method: request.method, path: request.url.split('?', 1)[0] };
    request.log.info(
      {
        req,
        status: reply.statusCode,
        ms: reply.elapsedTime,
        key: request.keyId,
      },
      'answered',
    );
    done();
  });
  return app;
}
