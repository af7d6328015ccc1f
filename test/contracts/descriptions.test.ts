import { readFileSync } from 'node:fs';
import { buildSchema, isIntrospectionType } from 'graphql';
import { expect, test } from '../support/jest.ts';

/** The descriptions in the contracts, for authors of clients. */
const document = JSON.parse(readFileSync('schema/openapi.json', 'utf8'));
const { schemas } = document.components;
const schema = buildSchema(readFileSync('schema/schema.graphql', 'utf8'));
const clients = readFileSync('docs/clients.md', 'utf8');

/** @returns every picked part of the document, with its JSON pointer */
function partsOf(
  part: any,
  isPicked: (part: any) => boolean,
  place = '#',
): Array<[place: string, part: any]> {
  if (typeof part !== 'object' || part === null) return [];
  const inside = Object.entries(part).flatMap(([name, value]) =>
    partsOf(value, isPicked, `${place}/${name}`),
  );
  return isPicked(part) ? [[place, part], ...inside] : inside;
}

test('the descriptions of id and categoryId warn that JSON.parse rounds them, and name exact ways', () => {
  const members = [
    schemas.NewPet.properties.categoryId,
    schemas.Pet.properties.categoryId,
    schemas.Pet.properties.id,
  ];
  const warning =
    'An int64, exact to the last digit. A JavaScript number would round it beyond 2^53.';
  for (const { type, format, description } of members) {
    expect({ type, format }).toEqual({ type: 'integer', format: 'int64' });
    expect(description).toContain(warning);
  }
});

test('the JavaScript in docs/clients.md reads and writes every int64 exactly', () => {
  const [, code = ''] =
    /```js\n(const read = [\s\S]+?)\n\n/.exec(clients) ?? [];
  const { read, write } = new Function(`${code}; return { read, write };`)();
  for (const id of [
    '1',
    '9007199254740993',
    '9223372036854775807',
    '-9223372036854775808',
  ]) {
    const text = `[{"id":${id},"name":"Rex","categoryId":${id},"status":"available"}]`;
    expect(`${read(text)[0].id}`).toBe(id);
    expect(write(read(text))).toBe(text);
  }
  expect(read('{"a":1.5,"b":1e300,"c":"9007199254740993"}')).toEqual({
    a: 1.5,
    b: 1e300,
    c: '9007199254740993',
  });
});

test('each enumeration is one component, and every status refers to PetStatus', () => {
  const listed = partsOf(document, (part) => Array.isArray(part.enum));
  const component = expect.stringMatching(/^#\/components\/schemas\/\w+$/);
  expect(listed).toEqual(listed.map(([, part]) => [component, part]));
  expect(listed).toContainEqual([
    '#/components/schemas/PetStatus',
    {
      type: 'string',
      enum: ['available', 'pending', 'sold'],
      description: 'Availability of an animal.',
    },
  ]);
  const $ref = '#/components/schemas/PetStatus';
  expect(partsOf(document, (part) => part.$ref === $ref)).toHaveLength(3);
});

test('every type in the GraphQL schema has a description, also Query and Mutation', () => {
  const types = Object.values(schema.getTypeMap()).filter(
    (type) => !isIntrospectionType(type),
  );
  expect(
    types.filter(({ description }) => !description).map(({ name }) => name),
  ).toEqual([]);
  expect(schema.getQueryType()?.description).toBe(
    'What can be read. Every operation needs an API key.',
  );
  expect(schema.getMutationType()?.description).toBe(
    'What can be changed. It needs an API key with the scope `write`.',
  );
});

test('every operation of REST says what it does, for assistants too', () => {
  const operations = Object.values(document.paths).flatMap((path: any) =>
    Object.values(path),
  );
  const silent = operations.filter(
    ({ summary, description }: any) => !summary?.trim() || description === '',
  );
  expect(silent.map(({ operationId }: any) => operationId)).toEqual([]);
});
