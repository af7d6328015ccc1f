import { type TSchema, Type } from 'typebox';
import {
  csvColumnsOf,
  type FormatName,
  formats,
} from '#engine/features/transfer/formats.js';
import {
  decimalSchema,
  enumSchema,
  int64Schema,
  moment,
  nullable,
  textSchema,
  use,
} from '#engine/validation/schemas.js';
import { moneySchema } from '../../modules/money/money.ts';
import { expect, test } from '../../support/jest.ts';

const item = Type.Object({
  id: Type.Unsafe<bigint>({ type: 'integer', format: 'int64' }),
  name: Type.String(),
  note: Type.Unsafe<string | null>({ type: 'string', nullable: true }),
});
const columns = csvColumnsOf(item);

/** Reads text that arrives byte by byte. */
async function read(
  format: FormatName,
  text: string | Buffer,
  maxLength = 100,
) {
  async function* bytes() {
    for (const byte of Buffer.from(text)) yield Buffer.from([byte]);
  }
  const lines = [];
  for await (const line of formats[format].read(bytes(), columns, maxLength))
    lines.push(line);
  return lines;
}

const items = [
  { id: 9007199254740993n, name: 'Rex, "the" dog', note: null },
  { id: 2n, name: ' two\r\nlines\u2028', note: '' },
];

test('items are written and read exactly, as lines of JSON', async () => {
  const { head, write } = formats.ndjson;
  const lines = (await read(
    'ndjson',
    head(columns) + write(columns, items),
  )) as Array<{ input: { id: number } }>;
  expect(lines).toEqual([
    { line: 1, input: items[0] },
    { line: 2, input: { ...items[1], id: 2 } },
  ]);
});

test('items are written and read exactly, as CSV', async () => {
  const { head, write } = formats.csv;
  expect(await read('csv', head(columns) + write(columns, items))).toEqual([
    { line: 2, input: { ...items[0], id: '9007199254740993' } },
    { line: 3, input: { ...items[1], id: '2' } },
  ]);
});

test.each<FormatName>(['csv', 'ndjson'])(
  'a byte order mark before %s, as of Excel, is skipped',
  async (format) => {
    const { head, write } = formats[format];
    const text = head(columns) + write(columns, items);
    expect(await read(format, `\ufeff${text}`)).toEqual(
      await read(format, text),
    );
  },
);

test.each(['\r', '\n', '\r\n'])('lines of CSV may end in %j', async (end) => {
  const text = ['id,name,note', '1,Rex,', '2,"a\rb\nc",x', ''].join(end);
  expect(await read('csv', text)).toMatchObject([
    { line: 2, input: { name: 'Rex' } },
    { input: { name: 'a\rb\nc', note: 'x' } },
  ]);
});

test('UTF-16 and NUL are refused, with the line', async () => {
  const utf16 = Buffer.from('\ufeffid,name,note\n', 'utf16le');
  await expect(read('csv', utf16)).rejects.toThrow('it is not UTF-8');
  await expect(read('csv', utf16)).rejects.toThrow('`iconv -f UTF-16');
  for (const bytes of [utf16, Buffer.from('{"id":\0}\n')]) {
    const fault = expect.stringMatching(/^The line is not acceptable JSON: /);
    expect((await read('ndjson', bytes))[0]).toEqual({ line: 1, fault });
  }
});

test('a line that is no JSON object, or is too long, is a fault of that line', async () => {
  const lines = await read(
    'ndjson',
    `{"id":1}\n\n[1]\n{"id":\n{"name":"${'x'.repeat(100)}"}\r\n{"id":2}`,
  );
  expect(lines).toEqual([
    { line: 1, input: { id: 1 } },
    { line: 3, fault: 'The line must be a JSON object.' },
    {
      line: 4,
      fault: expect.stringMatching(
        /^The line is not acceptable JSON: .+[^.]\.$/,
      ),
    },
    { line: 5, fault: 'The line is longer than 100 bytes.' },
    { line: 6, input: { id: 2 } },
  ]);
});

test('a record of CSV with too few or too many fields is a fault of that line', async () => {
  expect(await read('csv', 'id,name,note\n1,Rex\n2,Tom,,\n3,Ann,""\n')).toEqual(
    [
      { line: 2, fault: 'The line has 2 fields instead of 3.' },
      { line: 3, fault: 'The line has 4 fields instead of 3.' },
      { line: 4, input: { id: '3', name: 'Ann', note: '' } },
    ],
  );
});

test.each(['\r\n', '\n', '\r'])(
  'of CSV each line is counted once, also in a field (%j)',
  async (end) => {
    const rows = [
      'id,name,note',
      `1,"Rex${end}${end}x",""`,
      '2,Tom',
      '3,Ann,""',
    ];
    const read3 = await read('csv', rows.join(end));
    expect(read3.map(({ line }) => line)).toEqual([2, 5, 6]);
  },
);

test('a kind says its form in CSV', () => {
  const column = (schema: TSchema) =>
    csvColumnsOf(Type.Object({ one: schema }))[0];
  const description = 'x';
  const enumeration = enumSchema('E', { a: 'a' }, description);
  const ofText = [
    textSchema({ description }),
    textSchema({ format: 'email', description }),
    decimalSchema(8, 2, { description }),
  ];
  const ofJson = [
    Type.Unsafe({}),
    Type.Array(textSchema({ description })),
    Type.Array(Type.Integer()),
    Type.Object({ two: Type.Integer() }),
  ];
  const others = [
    int64Schema({ description }),
    Type.Integer(),
    Type.Boolean(),
    moment({ description }),
    enumeration,
    use(enumeration, description),
    moneySchema({ description }),
  ];
  const forms = [...ofText, ...ofJson, ...others].map(
    (schema) => column(schema)?.csv,
  );
  expect(forms).toEqual([
    ...ofText.map(() => 'text'),
    ...ofJson.map(() => 'json'),
    ...others.map(() => undefined),
  ]);
  const mayBeNull = nullable(enumeration);
  expect(column(mayBeNull)).toEqual({ name: 'one', isNullable: true });
});

test.each<[text: string | Buffer, reason: string]>([
  ['id,colour\n', 'its header names "colour"; known are id, name, note.'],
  ['id,id\n', 'its header names a column twice.'],
  [Buffer.from([0x69, 0x64, 0xe4]), 'it is not UTF-8'],
  ['id,name,note\n1,"Rex', 'Quote Not Closed'],
])('a CSV file is refused from its fault on: %j', async (text, reason) => {
  await expect(read('csv', text)).rejects.toThrow(reason);
});
