import { buildSchema, type ExecutionResult, execute, type GraphQLSchema, getOperationAST, parse } from 'graphql';
import { Executor } from '../../src/api/graphql/executor.ts';
import { shared } from '../../src/storage/input/page.ts';
import { describe, expect, test } from '../support/jest.ts';

/** What is written straight from what a resolver returns is what graphql-js makes of it, to the byte. */
const values: Record<string, unknown> = {};

const schema = buildSchema(`
  enum Size { SMALL LARGE }
  type Leg { length: Float!, toes: [String] }
  type Toy { id: ID!, name: String, size: Size, isNew: Boolean, count: Int, legs: [[Leg!]], best: Leg }
  type Query { toy: Toy, toys: [Toy!]!, some: [Toy] }
`);
for (const [name, field] of Object.entries(schema.getQueryType()?.getFields() ?? {})) {
  field.resolve = async () => values[name];
}
// As our own ID, which takes what graphql-js's refuses.
(schema.getType('ID') as { serialize(value: unknown): string }).serialize = (value) => `${value}`;

/** The answers from the second time on, when it is compiled; and graphql-js's own. */
async function answers(query: string, on: GraphQLSchema = schema): Promise<{ text: string; expected: string }> {
  const executor = new Executor(on, { jit: true, suggestions: true });
  const document = parse(query);
  const operation = getOperationAST(document) ?? undefined;
  const call = () => executor.execute({ document, operation, context: {}, variables: {} });
  await call();
  const { data, errors } = (await call()) as ExecutionResult;
  const { data: expected, ...rest } = await execute({ schema: on, document });
  return {
    text: executor.stringify({ data, ...(errors && { errors: errors.map((error) => error.toJSON()) }) } as never),
    expected: JSON.stringify({ ...rest, data: expected }),
  };
}

const everything = '{ id name size isNew count legs { length toes } best { length } __typename }';
const plain = { id: 7, name: 'Rex', size: 'LARGE', isNew: true, count: 0, legs: [], best: null };

describe('is written as graphql-js writes it:', () => {
  test.each<[string, object]>([
    ['plain members', plain],
    ['nothing where nothing may be', { id: 'x' }],
    ['an id of an int64', { ...plain, id: 9223372036854775807n }],
    ['a text with everything that JSON escapes', { ...plain, name: '"\\\u0000\u001f\n/\u007f\u2028\ud83d\udc36' }],
    ['half a character', { ...plain, name: 'a\ud83d', id: '\udc36' }],
    ['what is converted', { id: true, name: 5, size: 'SMALL', isNew: 1, count: '12', legs: null }],
    ['lists of lists', { ...plain, legs: [[{ length: 1.5, toes: ['a', null] }, { length: -0 }], null, []] }],
    ['objects in objects', { ...plain, best: { length: 1e21 } }],
  ])('%s', async (_what, toy) => {
    Object.assign(values, { toy, toys: [toy, plain], some: [null, toy] });
    for (const query of [
      `{ toy ${everything} }`,
      `{ toys ${everything} }`,
      `{ some ${everything} }`,
      `{ b: toy ${everything} toys { a: id a: id ... { name } ...F } } fragment F on Toy { id legs { toes } legs { length } }`,
      '{ toys { __typename } }',
    ]) {
      const { text, expected } = await answers(query);
      expect(text).toBe(expected);
    }
  });
});

describe('a value that is not of its type', () => {
  test.each<[string, object, string]>([
    ['no id', { id: null }, 'Cannot return null for non-nullable field Toy.id.'],
    ['an enum of another name', { ...plain, size: 'HUGE' }, 'Enum "Size" cannot represent value: "HUGE"'],
    ['a number that is none', { ...plain, count: 'many' }, 'Int cannot represent non-integer value: "many"'],
  ])('%s is an error of its field, and no data', async (_what, toy, message) => {
    Object.assign(values, { toy, toys: [plain, toy] });
    const one = JSON.parse((await answers(`{ toy ${everything} a: toy { __typename } }`)).text);
    expect(one).toEqual({ data: { toy: null, a: { __typename: 'Toy' } }, errors: [{ message, path: ['toy'] }] });
    const many = JSON.parse((await answers(`{ toys ${everything} }`)).text);
    expect(many).toEqual({ data: null, errors: [{ message, path: ['toys'] }] });
  });
});

describe('what is written once for all who share it', () => {
  const toys = [plain];

  test('is written again when nobody has promised that it does not change', async () => {
    values.toys = toys;
    expect((await answers('{ toys { name } }')).text).toBe('{"data":{"toys":[{"name":"Rex"}]}}');
    values.toys = Object.assign(toys, [{ ...plain, name: 'Ada' }]);
    expect((await answers('{ toys { name } }')).text).toBe('{"data":{"toys":[{"name":"Ada"}]}}');
  });

  test('is another for every selection', async () => {
    values.toys = shared([plain]);
    for (const [query, toy] of [
      ['{ toys { name } }', { name: 'Rex' }],
      ['{ toys { id } }', { id: '7' }],
      ['{ toys { name } }', { name: 'Rex' }],
    ] as const) {
      expect(JSON.parse((await answers(query)).text)).toEqual({ data: { toys: [toy] } });
    }
  });
});
