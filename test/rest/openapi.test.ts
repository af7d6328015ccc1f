import { readFile } from 'node:fs/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import fc from 'fast-check';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { success } from '#engine/api/rest/documented-responses.js';
import { enumSchema, nullable, use } from '#engine/validation/schemas.js';
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
  test('is served without a key as it is committed', async () => {
    const response = await fetch(`${store.origin}/v1/openapi.json`);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    const servers = [
      { url: `${store.origin}/v1`, description: 'This service' },
    ];
    expect(await response.json()).toEqual({ ...committed, servers });
  });

  test.each(['openapi.json', 'openapi-3.0.json'])(
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

describe('the document in OpenAPI 3.0', () => {
  const kind = enumSchema('WordKind', { noun: 'noun' }, 'A kind of words.');
  const members = {
    type: nullable(Type.String({ examples: ['type', 'const'], maxLength: 5 })),
    examples: Type.Integer({ exclusiveMinimum: 0, exclusiveMaximum: 9 }),
    const: Type.Literal('ball'),
    kind: { ...use(kind, 'Its kind.'), default: 'noun' },
    orNull: nullable(use(kind, 'Perhaps.')),
    default: Type.Unknown({ default: { exclusiveMinimum: 'none' } }),
  };
  const wordSchema = Type.Object(members, {
    $id: 'Word',
    description: 'A word.',
  });
  const words: Module = {
    tag: { name: 'Words', description: 'Words of schemas.' },
    open: () => ({
      routes(app) {
        const schema = {
          operationId: 'getWord',
          summary: 'Get a word',
          response: { 200: success(wordSchema, 'A word.') },
        };
        app.get('/word', { schema }, async () => ({}));
      },
    }),
  };
  const withWords = storeForAll({}, undefined, { more: [words] });
  const older = async ({ origin }: { origin: string }) => {
    const { text } = await send(origin, { path: '/v1/openapi-3.0.json' });
    return JSON.parse(text);
  };

  test('has the same operations, and a licence without an identifier', async () => {
    const json = await older(store);
    expect(json).toMatchObject({
      openapi: '3.0.3',
      info: {
        ...committed.info,
        license: { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' },
      },
      tags: committed.tags,
      security: committed.security,
    });
    expect(json.info.license).not.toHaveProperty('identifier');
    const idsIn = ({ paths }: any) =>
      Object.values<any>(paths).flatMap((path) =>
        Object.values<any>(path).map(({ operationId }) => operationId),
      );
    expect(idsIn(json)).toEqual(idsIn(committed));
  });

  test('replaces keywords that 3.0 lacks, but neither data nor names', async () => {
    const json = await older(withWords);
    const reference = { $ref: '#/components/schemas/WordKind' };
    expect(json.components.schemas.Word.properties).toEqual({
      type: { type: 'string', nullable: true, example: 'type', maxLength: 5 },
      examples: {
        type: 'integer',
        minimum: 0,
        exclusiveMinimum: true,
        maximum: 9,
        exclusiveMaximum: true,
      },
      const: { type: 'string', enum: ['ball'] },
      kind: { allOf: [reference], description: 'Its kind.', default: 'noun' },
      orNull: {
        allOf: [reference],
        nullable: true,
        description: 'Perhaps.',
      },
      default: { default: { exclusiveMinimum: 'none' } },
    });
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
