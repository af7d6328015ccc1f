import { sql, stock } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { send } from '../support/http.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';

/**
 * The edge table of values in GraphQL, as literals, as variables of a POST and
 * of a GET. Each operation is sent three times: the second time it is compiled,
 * and the responses must not differ.
 */

const store = storeForAll();
beforeEach(() => store.empty());

/** @returns the text of the response, which is the same each time */
async function run(
  query: string,
  variables = '{}',
  isGet = false,
): Promise<string> {
  const authorization = `Bearer ${store.key}`;
  const responses = new Set<string>();
  for (let time = 1; time <= 3; time += 1) {
    const { text } = isGet
      ? await send(store.origin, {
          path: `/graphql?${new URLSearchParams({ query, variables })}`,
          headers: { authorization },
        })
      : await graphqlText(
          store,
          `{"query":${JSON.stringify(query)},"variables":${variables}}`,
        );
    responses.add(text.trim());
  }
  expect(responses.size).toBe(1);
  return [...responses].join();
}

/** As a variable, by POST and by GET. */
const asVariable = async (query: string, name: string, value: string) => [
  await run(query, `{"${name}":${value}}`),
  await run(query, `{"${name}":${value}}`, true),
];

const none = '{"data":{"pets":[]}}';
/** @returns the message of a BAD_USER_INPUT error */
function refusalIn(response: string): string {
  const [{ message, extensions }] = JSON.parse(response).errors;
  expect(extensions).toEqual({ code: 'BAD_USER_INPUT', status: 400 });
  return message;
}

describe('an ID', () => {
  const after = 'query ($after: ID) { pets(after: $after) { id categoryId } }';
  const everywhere = async (value: string) => [
    await run(`{ pets(after: ${value}) { id categoryId } }`),
    ...(await asVariable(after, 'after', value)),
  ];

  test.each([
    '0',
    '-0',
    '9007199254740993',
    '9223372036854775807',
    '"5"',
    '"9223372036854775807"',
  ])(
    '%s is accepted as a literal and as a variable, by POST and by GET',
    async (value) =>
      expect(await everywhere(value)).toEqual([none, none, none]),
  );

  test.each([
    '9223372036854775808',
    '-9223372036854775809',
    `1${'0'.repeat(50)}`,
    '"rex"',
    '""',
    '"007"',
    '"1e3"',
  ])(
    '%s is refused by the service, as a literal and as a variable',
    async (value) => {
      const why = ['""', '"007"', '"1e3"'].includes(value)
        ? ', in plain digits'
        : '';
      const rule = `after must be an integer between -9223372036854775808 and 9223372036854775807${why}.`;
      expect((await everywhere(value)).map(refusalIn)).toEqual([
        rule,
        rule,
        rule,
      ]);
    },
  );

  test.each(['1.5', '1e400', '9007199254740993.5', '{}', '[]', 'true'])(
    '%s is refused by its type, and quoted as it was written',
    async (value) => {
      const message = `Variable "$after" got invalid value ${value}; ID cannot represent value: ${value}. It must be a string, or an integer in plain digits.`;
      expect((await asVariable(after, 'after', value)).map(refusalIn)).toEqual([
        message,
        message,
      ]);
    },
  );

  test.each(['5.0', '1e3', '9007199254740993.0', 'null'])(
    'the JSON %s is a whole number, or absent',
    async (value) => {
      expect(await asVariable(after, 'after', value)).toEqual([none, none]);
    },
  );

  test.each([
    ['9007199254740992', '9007199254740993'],
    ['-9223372036854775808', '-9223372036854775807'],
    ['9223372036854775806', '9223372036854775807'],
  ])('%s is not its neighbour %s', async (id, neighbour) => {
    const insert = `insert into pet (id, name, category_id, status) values ($1, 'Rex', $1, 'sold')`;
    await sql(store.database, insert, [neighbour]);
    const found = `{"data":{"pets":[{"id":"${neighbour}","categoryId":"${neighbour}"}]}}`;
    for (const value of [id, `"${id}"`]) {
      expect(await everywhere(value)).toEqual([found, found, found]);
      expect(
        await run(
          'query ($id: ID!) { pet(id: $id) { id } }',
          `{"id":${value}}`,
        ),
      ).toBe('{"data":{"pet":null}}');
    }
  });
});

describe('an Int', () => {
  const limit = 'query ($limit: Int) { pets(limit: $limit) { id } }';

  test.each(['100', '1e1', '5.0', 'null'])('%s is accepted', async (value) => {
    expect(await asVariable(limit, 'limit', value)).toEqual([none, none]);
  });

  test.each([
    '1.5',
    '"5"',
    'true',
    '[1]',
    '2147483648',
    '9007199254740993',
    '9223372036854775808',
    '1e400',
  ])('%s is refused by its type', async (value) => {
    const message = expect.stringMatching(
      /^Variable "\$limit" got invalid value .+Int cannot represent/s,
    );
    expect((await asVariable(limit, 'limit', value)).map(refusalIn)).toEqual([
      message,
      message,
    ]);
  });
});

const create =
  'mutation ($input: NewPet!) { createPet(input: $input) { name categoryId status } }';

describe('an input', () => {
  test.each([
    '9007199254740993',
    '9223372036854775807',
    '-9223372036854775808',
    '"9007199254740993"',
    '-0',
  ])(
    'keeps the category %s, inside an input object, as a variable of its own and as a literal',
    async (value) => {
      const digits = value.replaceAll('"', '').replace('-0', '0');
      const kept = `{"data":{"createPet":{"name":"Rex","categoryId":"${digits}","status":"available"}}}`;
      expect(
        await run(create, `{"input":{"name":"Rex","categoryId":${value}}}`),
      ).toBe(kept);
      const apart = create
        .replace('$input: NewPet!', '$id: ID!')
        .replace('$input', '{ name: "Rex", categoryId: $id }');
      expect(await run(apart, `{"id":${value}}`)).toBe(kept);
      const literal = create
        .replace('($input: NewPet!)', '')
        .replace('$input', `{ name: "Rex", categoryId: ${value} }`);
      expect(await run(literal)).toBe(kept);
      expect((await rest(store, '/v1/pets')).json).toHaveLength(9);
    },
  );

  test.each([
    [
      '{"name":"Rex"}',
      /Field "categoryId" of required type "ID!" was not provided/,
    ],
    [
      '{"name":9007199254740993,"categoryId":1}',
      /String cannot represent a non string value: 9007199254740993/,
    ],
    ['{"name":"Rex","categoryId":1.5}', /ID cannot represent value: 1\.5/],
    [
      '{"name":"Rex","categoryId":1,"status":"SOLD"}',
      /"PetStatus" enum\. Did you mean the enum value "sold"\?$/,
    ],
    [
      '{"name":"Rex","categoryId":1,"status":null}',
      /Expected non-nullable type "PetStatus!" not to be null/,
    ],
    [
      '{"name":"Rex","categoryId":1,"id":5}',
      /Field "id" is not defined by type "NewPet"/,
    ],
    ['null', /Variable "\$input" of non-null type "NewPet!" must not be null/],
  ])('%s is refused by its type', async (input, message) => {
    expect(refusalIn(await run(create, `{"input":${input}}`))).toMatch(message);
    expect((await rest(store, '/v1/pets')).json).toEqual([]);
  });
});

// Validation accepts such a variable, because its default is not null. Only the
// execution finds its null.
test.each([
  [
    'query ($a: Boolean = true) { pets @include(if: $a) { id } }',
    'Argument "if" of non-null type "Boolean!"',
  ],
  [
    'query ($a: Boolean = true) { pets { id @skip(if: $a) } }',
    'Argument "if" of non-null type "Boolean!"',
  ],
  [
    'query ($a: Boolean = true) { pets { ... @include(if: $a) { id } } }',
    'Argument "if" of non-null type "Boolean!"',
  ],
  [
    'query ($a: ID = 1) { pet(id: $a) { id } }',
    'Argument "id" of non-null type "ID!"',
  ],
  [
    'query ($a: String = "Pet") { __type(name: $a) { name } }',
    'Argument "name" of non-null type "String!"',
  ],
  [
    'mutation ($a: PetStatus = sold) { createPet(input: { name: "Rex", categoryId: 1, status: $a }) { id } }',
    'Argument "input" has invalid value {name: "Rex", categoryId: 1, status: $a}.',
  ],
])(
  'a variable with a default is refused when it is null where null is not allowed: %s',
  async (query, what) => {
    await stock(store.database, 1);
    const message = what.endsWith('.') ? what : `${what} must not be null.`;
    expect(refusalIn(await run(query, '{"a":null}'))).toBe(message);
    expect((await rest(store, '/v1/pets')).json).toHaveLength(1);
  },
);

test('a message about a long value has at most 1,000 characters', async () => {
  const status = JSON.stringify('x'.repeat(2000));
  const query = 'query ($status: PetStatus) { pets(status: $status) { id } }';
  for (const response of await asVariable(query, 'status', status))
    expect(refusalIn(response)).toHaveLength(1000);
});

describe('of large variables the first mistake is named, without their values', () => {
  const members = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, 1]));
  const long = 'x'.repeat(20_000);
  const valid = { name: 'Rex', categoryId: 1 };

  test.each([
    [
      'unknown members',
      { ...valid, ...members(9900) },
      'input',
      'Field "m0" is not',
    ],
    ['a long name', { ...valid, [long]: 1 }, 'input', 'Field "xxx'],
    ['an object for a text', { name: members(5000) }, 'input.name', 'String'],
    [
      'an object for a number',
      { name: 'Rex', categoryId: members(5000) },
      'input.categoryId',
    ],
    ['a long value', { ...valid, status: long }, 'input.status', 'Value "xx'],
    [
      'a list for a text',
      { name: Array(5000).fill(1) },
      'input.name',
      'String',
    ],
  ])('%s', async (_what, input, place, reason = '') => {
    const text = JSON.stringify({ input });
    const response = await run(create, text);
    expect(JSON.parse(response).errors).toHaveLength(1);
    const begin = `Variable "$${place}" got an invalid value; ${reason}`;
    expect(refusalIn(response).slice(0, begin.length)).toBe(begin);
    expect(response).not.toContain('Did you mean');
  });

  test('valid ones are accepted', async () => {
    const status = '"sold"';
    const after = ' '.repeat(20_000);
    const query = 'query ($status: PetStatus) { pets(status: $status) { id } }';
    expect(await run(query, `{"status":${status}${after}}`)).toBe(none);
  });
});
