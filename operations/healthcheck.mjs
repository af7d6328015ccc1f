// Whether this container's service is alive: `node healthcheck.mjs` ends with 0 or 1. Asked where it listens, which is
// not loopback when the host is one address; on the port for operators, if there is one, where no queue delays it.
const { HOST, PORT = '4000', OPERATIONS_HOST, OPERATIONS_PORT = '0' } = process.env;
const hasOwn = Number(OPERATIONS_PORT) > 0;
const [name = '127.0.0.1', port] = hasOwn ? [OPERATIONS_HOST, OPERATIONS_PORT] : [HOST, PORT];
const loopback = { '0.0.0.0': '127.0.0.1', '::': '::1' };
const host = loopback[name] ?? name;
const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/livez`;
const { ok } = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(() => ({ ok: false }));
process.exit(ok ? 0 : 1);
