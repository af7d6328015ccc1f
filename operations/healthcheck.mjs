// `node healthcheck.mjs` exits with 0 if this container's service is alive,
// otherwise with 1. It requests the address on which the service listens,
// because HOST may be a single address other than loopback. It prefers the
// operations port, where no queue delays the response.
const {
  HOST,
  PORT = '4000',
  OPERATIONS_HOST,
  OPERATIONS_PORT = '0',
} = process.env;
const hasOwn = Number(OPERATIONS_PORT) > 0;
const [name = '127.0.0.1', port] = hasOwn
  ? [OPERATIONS_HOST, OPERATIONS_PORT]
  : [HOST, PORT];
const loopback = { '0.0.0.0': '127.0.0.1', '::': '::1' };
const host = loopback[name] ?? name;
const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/livez`;
const { ok } = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(
  () => ({ ok: false }),
);
process.exit(ok ? 0 : 1);
