// Whether this container's service is alive: `node healthcheck.mjs` ends with 0 or 1. Asked where it listens, which is
// not loopback when HOST is one address.
const { HOST = '127.0.0.1', PORT = '4000' } = process.env;
const loopback = { '0.0.0.0': '127.0.0.1', '::': '::1' };
const host = loopback[HOST] ?? HOST;
const url = `http://${host.includes(':') ? `[${host}]` : host}:${PORT}/livez`;
const { ok } = await fetch(url, { signal: AbortSignal.timeout(2000) }).catch(() => ({ ok: false }));
process.exit(ok ? 0 : 1);
