// runs: embedded, postgres, pgbouncer, postgres-12
import { type TSchema, Type } from 'typebox';
import { Call } from '#engine/call.js';
import { Records } from '#engine/records/records.js';
import { select } from '#engine/records/select.js';
import {
  decimalSchema,
  enumSchema,
  int64Schema,
  moment,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { beforeAll, describe, expect, test } from '../support/jest.ts';
import { storeForAll } from '../support/store.ts';
import { diariesModule } from './diaries/diaries.module.ts';
import {
  type Diary,
  DiaryEntity,
  diary,
  type NewDiary,
} from './diaries/diary.ts';

/** Own SQL of a module. */

const description = 'x';
const store = storeForAll({}, undefined, { more: [diariesModule] });
let diaries: Records<Diary, NewDiary>;
const callOf = (id: number, scopes = ['write']) =>
  Object.assign(new Call(), { caller: { id, name: 'x', scopes } });
const [ada, bob, all] = [
  callOf(7),
  callOf(8),
  callOf(9, ['write', 'diaries:all']),
];

beforeAll(async () => {
  diaries = new Records(store.database, DiaryEntity, diary.lists);
  for (const [call, title, pages] of [
    [ada, 'one', 1],
    [ada, 'two', 2],
    [bob, "o'; drop table diary; --", 40],
  ] as const)
    await diaries.create({ title, mood: 'fine', pages } as never, call);
});

describe('own SQL', () => {
  const sums = Type.Object({
    count: int64Schema({ description }),
    pages: int64Schema({ description }),
  });
  const sumFor = (call: Call) =>
    select(call, sums)`
      select count(*) as count, coalesce(sum(pages), 0) as pages from ${diaries} as diary`;

  test('reads the rows that the call sees, also concurrently, joined and below others', async () => {
    const seen = await Promise.all([ada, bob, all, ada].map(sumFor));
    expect(seen).toEqual([
      [{ count: 2, pages: 3 }],
      [{ count: 1, pages: 40 }],
      [{ count: 3, pages: 43 }],
      [{ count: 2, pages: 3 }],
    ]);
    expect(await sumFor(callOf(10))).toEqual([{ count: 0, pages: 0 }]);
    const joined = await select(ada, sums)`
      with own as (select * from ${diaries} as diary)
      select count(*) as count, sum(own.pages) as pages
      from own cross join ${diaries} as other
      where own.id in (select id from ${diaries} as third)`;
    expect(joined).toEqual([{ count: 4, pages: 6 }]);
    await expect(async () => sumFor(new Call())).rejects.toThrow(
      'These rows belong to callers',
    );
  });

  test('has items of its Records, with members as columns, and values as parameters', async () => {
    const title = "o'; drop table diary; --";
    const find = (call: Call) =>
      select(call, diaries)`
        select * from ${diaries} as diary where "createdBy" = ${'key:8'} and title = ${title}`;
    const [found] = await find(all);
    const { items } = await diaries.list({ limit: 5 } as never, bob);
    expect(found).toEqual(items[0]);
    expect(await find(ada)).toEqual([]);
  });

  const one = async (schema: TSchema, sql: string) => {
    const strings = [`select ${sql} as one from `, ' as diary limit 1'];
    const asked = Object.assign(strings, { raw: strings }) as never;
    const [row] = await select(all, Type.Object({ one: schema }))(
      asked,
      diaries,
    );
    return row?.one;
  };
  const integer = Type.Integer({ description });
  const decimal = decimalSchema(30, 2, { description });
  const text = textSchema({ description });

  test.each<[TSchema, string, unknown]>([
    [int64Schema({ description }), '9223372036854775807', 2n ** 63n - 1n],
    [
      int64Schema({ description }),
      'max(9007199254740993::bigint)',
      2n ** 53n + 1n,
    ],
    [integer, 'count(*)', 3],
    [decimal, 'sum(12345678901234567890.10)', '37037036703703703670.30'],
    [decimal, '-0.01::numeric', '-0.01'],
    [text, "'a,\"b' || chr(10)", 'a,"b\n'],
    [nullable(text), 'null', null],
    [Type.Boolean(), 'true', true],
    [Type.Number(), '0.5::float8', 0.5],
    [
      moment({ description }),
      "'2031-01-01 00:00:00.001+00'::timestamptz",
      new Date(Date.UTC(2031, 0, 1, 0, 0, 0, 1)),
    ],
    [enumSchema('Mood', { fine: 'fine' }, description), 'min(mood)', 'fine'],
  ])('reads exactly: %# %s', async (schema, sql, expected) => {
    expect(await one(schema, sql)).toEqual(expected);
  });

  test.each<[TSchema, string, string]>([
    [integer, '1.5', 'Cannot convert 1.5 to a BigInt'],
    [int64Schema({ description }), "'NaN'::numeric", 'Cannot convert NaN'],
    [integer, 'sum(pages) filter (where false)', 'one is null, which'],
    [text, 'null', 'one is null, which its schema excludes.'],
  ])('rounds and invents nothing: %# %s', async (schema, sql, fault) => {
    await expect(one(schema, sql)).rejects.toThrow(fault);
  });

  test('has at most as many characters as a page, and says so', async () => {
    const texts = Type.Object({ one: text });
    const rows = (count: number, length: number) =>
      select(all, texts)`
        select repeat('x', ${length}::int) as one from generate_series(1, ${count}) as one, (select min(id) from ${diaries} as diary) as least`;
    expect(await rows(100, 27_962)).toHaveLength(100);
    const refusal = {
      code: 'BAD_USER_INPUT',
      message: 'This has more than 2796200 characters: ask for less.',
    };
    await expect(rows(100, 27_963)).rejects.toMatchObject(refusal);
    await expect(rows(1000, 2797)).rejects.toMatchObject(refusal);
  });

  test('has at most 1,000 rows, and says so', async () => {
    const rows = (count: number) =>
      select(all, sums)`
        select one as count, one as pages from generate_series(1, ${count}) as one, (select min(id) from ${diaries} as diary) as least`;
    expect(await rows(1000)).toHaveLength(1000);
    await expect(rows(1001)).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      message: 'This has more than 1000 rows: ask for less.',
    });
  });

  test('cannot write, and needs a collection', async () => {
    await expect(
      select(
        all,
        sums,
      )`with gone as (delete from diary returning id) select 1 as count, 1 as pages from ${diaries} as diary`,
    ).rejects.toThrow();
    await expect(
      select(all, sums)`select 1 as count, 1 as pages`,
    ).rejects.toThrow('A select needs the collection that it reads.');
    expect((await sumFor(all))[0]?.count).toBe(3);
  });

  test('sees in a transaction what that has written, and ends with the deadline', async () => {
    const frame = { creates: [DiaryEntity], input: {} };
    const counted = store.database.transaction(ada, frame, async () => {
      await diaries.create({ title: 'in', mood: 'x', pages: 7 } as never, ada);
      const [sum] = await sumFor(ada);
      throw new Error(`undone ${sum?.pages}`);
    });
    await expect(counted).rejects.toThrow('undone 10');
    expect(await sumFor(ada)).toEqual([{ count: 2, pages: 3 }]);
    const late = Object.assign(new Call(1), { caller: all.caller });
    await expect(
      select(
        late,
        sums,
      )`select count(*) as count, 1 as pages from ${diaries} as diary, pg_sleep(0.5)`,
    ).rejects.toMatchObject({ name: 'Unavailable' });
  });
});
