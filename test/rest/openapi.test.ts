import { readFile } from 'node:fs/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import fc from 'fast-check';
import { toOpenApi30 } from '#engine/api/rest/openapi-3.0.js';
import { send } from '../support/http.ts';
import { cases, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { onNode, storeForAll } from '../support/store.ts';

const committed = JSON.parse(await readFile('schema/openapi.json', 'utf8'));
const operations = Object.values<any>(committed.paths).flatMap((path) =>
  Object.values<any>(path),
);

const store = storeForAll();

describe('the OpenAPI document', () => {
  const documents = [
    ['openapi.json', committed],
    ['openapi-3.0.json', toOpenApi30(committed)],
  ];
  test.each(documents)(
    'is served without a key as it is committed, also converted to 3.0: %s',
    async (name, expected) => {
      const response = await fetch(`${store.origin}/v1/${name}`);
      expect(response.headers.get('content-type')).toMatch(
        /^application\/json/,
      );
      const servers = [
        { url: `${store.origin}/v1`, description: 'This service' },
      ];
      expect(await response.json()).toEqual({ ...expected, servers });
    },
  );

  test.each(documents)(
    'names the address that was asked, with an entity tag of its own: %s',
    async (name) => {
      const read = async (headers: Record<string, string>) => {
        const {
          status,
          headers: received,
          text,
        } = await send(store.origin, { path: `/v1/${name}`, headers });
        const address =
          status === 200 ? JSON.parse(text).servers[0].url : undefined;
        return { status, tag: `${received.etag}`, address };
      };
      const one = await read({ host: 'one.example' });
      const other = await read({ host: 'other.example:8443' });
      expect([one.address, other.address]).toEqual([
        'http://one.example/v1',
        'http://other.example:8443/v1',
      ]);
      expect(one.tag).not.toBe(other.tag);
      expect(
        await read({ host: 'one.example', 'if-none-match': one.tag }),
      ).toMatchObject({ status: 304 });
      const ofOther = { host: 'one.example', 'if-none-match': other.tag };
      expect(await read(ofOther)).toEqual({
        status: 200,
        tag: one.tag,
        address: one.address,
      });
      const forwarded = {
        'x-forwarded-for': '192.0.2.1',
        'x-forwarded-host': 'a.example',
        'x-forwarded-proto': 'https',
      };
      expect((await read({ host: 'one.example', ...forwarded })).address).toBe(
        'http://one.example/v1',
      );
      await onNode(store, { TRUST_PROXY: '127.0.0.1' }, async ({ origin }) => {
        const headers = { ...forwarded, 'x-forwarded-prefix': '/store' };
        const { text } = await send(origin, { path: `/v1/${name}`, headers });
        expect(JSON.parse(text).servers[0].url).toBe(
          'https://a.example/store/v1',
        );
      });
    },
  );

  test('has the operations, schemas and tags of the interface, under the major version', () => {
    const named = operations.map(
      ({ operationId, tags, deprecated = false }) => [
        operationId,
        ...tags,
        deprecated,
      ],
    );
    expect(named).toEqual([
      ['listPets', 'Pets', false],
      ['createPet', 'Pets', false],
      ['getPet', 'Pets', true],
      ['listOrders', 'Store', false],
    ]);
    expect(Object.keys(committed.paths)).toEqual([
      '/pets',
      '/pets/{petId}',
      '/store/orders',
    ]);
    expect(Object.keys(committed.components.schemas).sort()).toEqual([
      'Error',
      'NewPet',
      'Pet',
      'PetStatus',
      'Pets',
      'Sort',
    ]);
    expect(
      committed.tags.map(({ name }: { name: string }) => name).sort(),
    ).toEqual(['Pets', 'Store']);
    expect(committed.info.version).toBe('1.0.0');
    expect(committed.paths['/pets/{petId}'].get.description).toContain(
      '5 December 2030',
    );
    // The specification's notation: its path ends with the major version.
    const { url, variables } = committed.servers[0];
    expect([url, variables.base_url.default]).toEqual([
      '{base_url}',
      expect.stringMatching(/\/v1$/),
    ]);
  });

  test('keeps what the interface states, also where a change would break no client', async () => {
    const limit = committed.paths['/pets'].get.parameters.find(
      ({ name }: { name: string }) => name === 'limit',
    );
    expect(limit.schema).toEqual({
      type: 'integer',
      minimum: 1,
      maximum: 100,
      default: 20,
    });
    expect(committed.components.schemas.PetStatus.enum).toEqual([
      'available',
      'pending',
      'sold',
    ]);
    expect(committed.paths['/pets/{petId}'].get.deprecated).toBe(true);
    expect(committed.paths['/pets'].post.requestBody.required).toBe(true);
    expect(committed.paths['/pets'].get.responses[200].headers).toHaveProperty(
      'Link',
    );
  });

  test('has the 400 of a request without a valid Host in each operation', () => {
    for (const { responses } of operations)
      expect(Object.keys(responses)).toContain('400');
  });

  test('describes a failure of several operations once', () => {
    const described = operations.flatMap(({ responses }) =>
      Object.entries<any>(responses).filter(
        ([status]) => Number(status) >= 400,
      ),
    );
    const written = described
      .filter(([, { $ref }]) => !$ref)
      .map(([, failure]) => JSON.stringify(failure));
    expect(new Set(written).size).toBe(written.length);
    const { responses } = committed.components;
    const uses = described.map(([, { $ref = '' }]) => $ref.split('/').at(-1));
    for (const [name, failure] of Object.entries(responses)) {
      expect(uses.filter((one) => one === name).length).toBeGreaterThan(1);
      expect(written).not.toContain(JSON.stringify(failure));
    }
  });

  test('requires a bearer key for every operation', () => {
    expect(committed.components.securitySchemes.apiKey).toMatchObject({
      type: 'http',
      scheme: 'bearer',
    });
    expect(committed.security).toEqual([{ apiKey: [] }]);
    for (const operation of operations) {
      expect(operation).not.toHaveProperty('security');
      expect(operation.responses).toHaveProperty('401');
    }
  });
});

test('the document in OpenAPI 3.0 replaces keywords that 3.0 lacks, but neither data nor names', () => {
  const reference = { $ref: '#/components/schemas/Kind' };
  const properties = {
    type: {
      type: ['string', 'null'],
      examples: ['type', 'const'],
      maxLength: 5,
    },
    examples: {
      type: 'integer',
      exclusiveMinimum: 0,
      exclusiveMaximum: 9,
      example: 1,
    },
    const: { type: 'string', const: 'ball' },
    kind: {
      ...reference,
      description: 'Its kind.',
      default: { type: ['null'], const: 1 },
    },
    plain: reference,
    orNull: { anyOf: [reference, { type: 'null' }], description: 'Perhaps.' },
    either: { anyOf: [reference, { type: ['integer', 'null'] }] },
  };
  const document = {
    openapi: '3.1.0',
    info: { license: { identifier: 'MIT' } },
  };
  const replaced = {
    type: { type: 'string', nullable: true, example: 'type', maxLength: 5 },
    examples: {
      type: 'integer',
      minimum: 0,
      exclusiveMinimum: true,
      maximum: 9,
      exclusiveMaximum: true,
      example: 1,
    },
    const: { type: 'string', enum: ['ball'] },
    kind: {
      allOf: [reference],
      description: 'Its kind.',
      default: { type: ['null'], const: 1 },
    },
    plain: reference,
    orNull: { allOf: [reference], nullable: true, description: 'Perhaps.' },
    either: { anyOf: [reference, { type: 'integer', nullable: true }] },
  };
  const schema = (members: object) => ({
    ...document,
    components: { schemas: { const: { properties: members } } },
  });
  expect(toOpenApi30(schema(properties))).toEqual({
    ...schema(replaced),
    openapi: '3.0.3',
    info: { license: { url: 'https://spdx.org/licenses/MIT.html' } },
  });
});

describe('the schema of NewPet and the service', () => {
  const ajv = new Ajv2020({ strict: false });
  (formats as unknown as (instance: Ajv2020) => void)(ajv);
  const isNewPet = ajv
    .addSchema(committed, 'openapi')
    .compile({ $ref: 'openapi#/components/schemas/NewPet' });

  // Excludes rules beyond JSON Schema: whole numbers that a double cannot hold,
  // text that PostgreSQL cannot store.
  const number = fc.oneof(
    fc.maxSafeInteger(),
    fc.double({ min: -(2 ** 53), max: 2 ** 53, noNaN: true }),
  );
  const text = fc
    .string({ unit: 'grapheme' })
    .filter((one) => !one.includes('\u0000'));
  const anything = fc
    .jsonValue({ maxDepth: 2, stringUnit: 'grapheme' })
    .filter((value) => !/\\u0000|e\+\d|\d{17}/.test(JSON.stringify(value)));
  const likeNewPet = fc.record(
    {
      name: fc.oneof(
        { weight: 4, arbitrary: text as fc.Arbitrary<unknown> },
        anything,
      ),
      categoryId: fc.oneof(
        { weight: 4, arbitrary: number as fc.Arbitrary<unknown> },
        anything,
      ),
      status: fc.oneof(
        {
          weight: 4,
          arbitrary: fc.constantFrom<unknown[]>(
            'available',
            'pending',
            'sold',
            'Sold',
          ),
        },
        anything,
      ),
      more: anything,
    },
    { requiredKeys: [], noNullPrototype: true },
  );
  const body = fc
    .oneof(
      { weight: 5, arbitrary: likeNewPet as fc.Arbitrary<unknown> },
      anything,
    )
    .map((value) => JSON.stringify(value));

  test('agree on every body', async () => {
    const verdicts = { 201: 0, 400: 0 };
    await fc.assert(
      fc.asyncProperty(body, async (json) => {
        const { status } = await rest(store, '/v1/pets', {
          method: 'POST',
          body: json,
        });
        expect(status).toBe(isNewPet(JSON.parse(json)) ? 201 : 400);
        verdicts[status as 201] += 1;
      }),
      { numRuns: cases(2000) },
    );
    expect(Math.min(...Object.values(verdicts))).toBeGreaterThan(
      cases(2000) / 25,
    );
  });
});
