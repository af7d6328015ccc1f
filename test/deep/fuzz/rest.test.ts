// runs: embedded, postgres

import { readFileSync } from 'node:fs';
import { METHODS } from 'node:http';
import fc from 'fast-check';
import { send } from '../../support/http.ts';
import { storeForAll } from '../../support/store.ts';
import { assertRestAnswer } from './answers.ts';
import { fuzz } from './fuzz.ts';
import {
  anyJson,
  headerText,
  mutated,
  newPetJson,
  someHeaders,
} from './values.ts';

const document = JSON.parse(readFileSync('schema/openapi.json', 'utf8'));

const idText = fc.oneof(
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
  fc.integer({ min: 0, max: 50 }).map(String),
  fc.constantFrom(
    ...'007 1.0 1e3 . .. %00 %2F % %zz %ud800 %ff %c0%80'.split(' '),
    '',
    'a'.repeat(9000),
  ),
);
const piece = fc.oneof(
  fc.string({
    unit: fc
      .integer({ min: 0x21, max: 0x7e })
      .map((code) => String.fromCharCode(code)),
    maxLength: 20,
  }),
  fc.string({
    unit: fc
      .integer({ min: 0xa1, max: 0xff })
      .map((code) => String.fromCharCode(code)),
    maxLength: 5,
  }),
  fc
    .string({ unit: 'grapheme', maxLength: 8 })
    .map((text) => encodeURIComponent(text)),
  idText,
);

const documented = fc
  .constantFrom(...Object.keys(document.paths))
  .chain((template) =>
    idText.map((id) => `/v1${template.replace(/\{\w+\}/, () => id)}`),
  );
const others = fc.constantFrom(
  ...'/ /v1 /v1/ /v1/pets/ //v1/pets /V1/PETS /v1/pets/1/2 /v1//pets /v1/./pets /v1/../v1/pets'.split(
    ' ',
  ),
  ...'/livez /readyz /docs /docs/ /docs/static/reference.js /docs/static/..%2f /schema.graphql /robots.txt'.split(
    ' ',
  ),
  ...'/v1/openapi.json /metrics /v1/store/orders/ * http://elsewhere.example/v1/pets /favicon.ico'.split(
    ' ',
  ),
);
const path = fc.oneof(
  { weight: 6, arbitrary: fc.constant('/v1/pets') },
  { weight: 5, arbitrary: documented },
  { weight: 3, arbitrary: others },
  {
    weight: 2,
    arbitrary: fc
      .array(piece, { maxLength: 4 })
      .map((pieces) => `/${pieces.join('/')}`),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(documented, piece)
      .map(([start, end]) => `${start}/${end}`),
  },
);
const parameter = fc.tuple(
  fc.oneof(
    fc.constantFrom(
      'limit',
      'status',
      'after',
      '__proto__',
      'limit[]',
      'limit%5B%5D',
      '',
    ),
    piece,
  ),
  fc.oneof(
    fc.constantFrom('available', 'sold', '20', '0', '101', '-1', '1e1'),
    idText,
    piece,
  ),
);
const query = fc
  .array(parameter, { maxLength: 5 })
  .map((all) => all.map(([name, value]) => `${name}=${value}`).join('&'));

const request = fc
  .record({
    method: fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom('GET', 'POST', 'POST') },
      {
        weight: 3,
        arbitrary: fc.constantFrom(
          ...METHODS.filter((method) => method !== 'CONNECT'),
        ),
      },
    ),
    path,
    query: fc.option(query, { nil: undefined }),
    headers: someHeaders,
    key: fc.oneof(
      { weight: 20, arbitrary: fc.constant('right') },
      { weight: 1, arbitrary: fc.oneof(fc.constant('none'), headerText) },
    ),
    body: fc.oneof(
      { weight: 3, arbitrary: fc.constant(undefined) },
      { weight: 6, arbitrary: newPetJson },
      { weight: 6, arbitrary: fc.oneof(mutated(newPetJson), anyJson) },
      {
        weight: 1,
        arbitrary: fc
          .uint8Array({ maxLength: 200 })
          .map((bytes) => Buffer.from(bytes)),
      },
      { weight: 1, arbitrary: fc.constant('{"name":"'.padEnd(1_100_000, 'x')) },
    ),
  })
  .map(({ query: search, ...request }) => {
    const target =
      search === undefined ? request.path : `${request.path}?${search}`;
    return {
      ...request,
      path: target.startsWith('http:') ? target.replaceAll('#', '') : target,
    };
  });

// Some requests never end. They must not delay the others.
fuzz(storeForAll({ REQUEST_TIMEOUT_MS: '3000' }), {
  name: 'REST requests',
  share: 0.45,
  request,
  async send({ key, ...request }, store) {
    const credentials: Record<string, string> =
      key === 'none'
        ? {}
        : { authorization: key === 'right' ? `Bearer ${store.key}` : key };
    const type: Record<string, string> =
      request.body === undefined ? {} : { 'content-type': 'application/json' };
    const sent = {
      ...request,
      headers: { ...credentials, ...type, ...request.headers },
    };
    const response = await send(store.origin, sent).catch(
      (error: NodeJS.ErrnoException) => {
        // Bytes that are no HTTP request get a response with a body, which a
        // client does not expect after HEAD.
        if (sent.method === 'HEAD' && error.code?.startsWith('HPE_'))
          return undefined;
        throw error;
      },
    );
    if (!response) return [];
    assertRestAnswer(sent, response);
    return [`${response.status}`];
  },
  show: ({ body, ...request }) =>
    `${JSON.stringify(request)} with the body ${JSON.stringify(`${body}`.slice(0, 500))}`,
});
