import fc from 'fast-check';

export const headerText = fc.string({
  unit: fc
    .oneof(fc.integer({ min: 0x20, max: 0x7e }), fc.integer({ min: 0x80, max: 0xff }))
    .map((code) => String.fromCharCode(code)),
});
const oneOf = (...values: string[]) =>
  fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...values) }, { weight: 1, arbitrary: headerText });
const headers = fc.record(
  {
    accept: oneOf('*/*', 'text/html', 'application/xml', 'application/json;q=0', ''),
    'accept-encoding': oneOf('gzip', 'br', 'identity;q=0', '*;q=0'),
    'content-type': oneOf(
      'application/json',
      'application/json; charset=utf-16',
      'text/plain',
      'multipart/form-data',
      ';',
      'application/json;charset=',
    ),
    'content-encoding': oneOf('gzip', 'identity', 'br'),
    'transfer-encoding': oneOf('chunked', 'gzip, chunked', 'identity'),
    expect: oneOf('100-continue', '200-ok'),
    host: oneOf('example.com', 'a b', '[::1]:80', 'x:99999', '>;rel=next', ''),
    origin: oneOf('https://shop.example', 'null'),
    'access-control-request-method': oneOf('POST', 'DELETE'),
    forwarded: oneOf('for=1.2.3.4;host=evil.example;proto=https', 'for="'),
    'x-forwarded-host': oneOf('evil.example', 'a,b'),
    'x-forwarded-proto': oneOf('https', 'javascript'),
    'x-request-id': oneOf('abc', 'a'.repeat(65)),
    'x-http-method-override': oneOf('DELETE'),
    range: oneOf('bytes=0-1', 'bytes=9-1'),
    'if-none-match': oneOf('*', '"a"'),
    'if-modified-since': oneOf('Thu, 05 Dec 2030 00:00:00 GMT'),
    connection: oneOf('close', 'keep-alive', 'upgrade'),
    upgrade: oneOf('websocket', 'h2c'),
    te: oneOf('trailers'),
    cookie: oneOf('a=b'),
  },
  { requiredKeys: [] },
);
// A few at a time: all at once would always be refused for the first.
const pickedHeaders = fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.array(fc.nat(20), { maxLength: 3 }));
/** None, or a few of those that servers are known to stumble over. */
export const someHeaders = fc.tuple(headers, pickedHeaders).map(([all, picked]) => {
  const entries = Object.entries(all);
  return Object.fromEntries(picked.flatMap((index) => (entries[index] ? [entries[index]] : [])));
});
