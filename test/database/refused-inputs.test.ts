// runs: embedded, postgres, pgbouncer

import { Call } from '#engine/call.js';
import { refusalIn } from '#engine/database/transaction.js';
import { PetService } from '../../src/pets/pet.service.ts';
import { creators } from '../support/apis.ts';
import { sql, withRows } from '../support/database-access.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { storeForAll } from '../support/store.ts';

/** Inputs that PostgreSQL refuses share their statements with good ones. */

const where = citusLayout ? describe.skip : describe;

/** A text that does not compress, too long for an index. */
const longName = String.fromCodePoint(
  ...Array.from({ length: 1000 }, (_, at) => 0x4e00 + ((at * 7919) % 20_000)),
);
/** One that makes a row too large for a page. */
const wide = `wide ${'x'.repeat(900)}`;
const rule = 'A rule of the database refuses this.';
const failed = 'The service failed to answer this request.';
const refusals = [
  { name: 'raised', status: 400, message: rule },
  { name: 'told #overtaken', status: 400, message: rule },
  { name: 'cast #overtaken', status: 400, message: rule },
  { name: 'dropped', status: 400, message: rule },
  { name: 'checked', status: 400, message: rule },
  { name: 'ranged', status: 400, message: rule },
  { name: 'rooted', status: 400, message: rule },
  {
    name: longName,
    status: 400,
    message: 'Its texts are too long for an index.',
  },
  { name: wide, status: 400, message: 'It is too large for the database.' },
  { name: 'twin', status: 409, message: 'Another one excludes this name.' },
  { name: 'unique', status: 409, message: 'Another one has this name.' },
  { name: 'odd', status: 500, message: failed },
  { name: 'lettered', status: 500, message: failed },
  { name: 'limited', status: 500, message: failed },
  { name: 'unready', status: 500, message: failed },
  { name: 'unsupported', status: 500, message: failed },
  { name: 'corrupted', status: 500, message: failed },
  { name: 'unknown', status: 500, message: failed },
];

where('inputs that the database refuses (Citus has no triggers)', () => {
  const store = storeForAll({}, async () => {
    for (const statement of [
      `create function judge() returns trigger language plpgsql as $$ begin
        case new.name
          when 'raised' then raise exception 'this is a test';
          when 'told #overtaken' then raise exception 'it refuses %', new.name;
          when 'cast #overtaken' then perform new.name::int;
          when 'conflicting' then raise exception 'this is a test' using errcode = '40001';
          when 'locked' then raise exception 'this is a test' using errcode = '55P03';
          when 'odd' then raise exception 'this is a test' using errcode = 'XY123';
          when 'lettered' then raise exception 'this is a test' using errcode = 'STOCK';
          when 'limited' then raise exception 'this is a test' using errcode = '42501';
          when 'unready' then raise exception 'this is a test' using errcode = '55000';
          when 'unsupported' then raise exception 'this is a test' using errcode = '0A000';
          when 'corrupted' then raise exception 'this is a test' using errcode = 'XX001';
          when 'unknown' then perform no_such_function();
          when 'dropped' then return null;
          else return new;
        end case;
      end $$`,
      'create trigger judge before insert on pet for each row execute function judge()',
      `alter table pet add constraint judged check (name <> 'checked')`,
      `alter table pet add constraint ranged check (not isempty(int4range(0, case when name = 'ranged' then -1 else 1 end)))`,
      `alter table pet add constraint rooted check (sqrt(case when name = 'rooted' then -1 else 1 end) > 0)`,
      'create index pet_name on pet (name)',
      `alter table pet add copy text generated always as (case when name like 'wide%' then repeat(name, 10) end) stored`,
      'alter table pet alter copy set storage plain',
      `create unique index pet_unique on pet (name) where name = 'unique'`,
      `alter table pet add constraint excluded exclude using btree (name with =) where (name = 'twin')`,
    ])
      await sql(store.database, statement);
  });
  beforeEach(async () => {
    await store.empty();
    const text =
      "insert into pet (name, category_id, status) select name, 1, 'sold' from unnest(array['twin', 'unique']) as name";
    await sql(store.database, text);
  });

  const outcomes = [
    ...creators.map((creator) => ({ ...creator, isOnce: false })),
    ...creators.map((creator) => ({ ...creator, isOnce: true })),
  ];
  test.each(outcomes)(
    'fail alone, and all others are stored once, through $name, with a key each: $isOnce',
    async ({ name: api, create, isOnce }) => {
      const bad = refusals.map(({ name }) => name);
      const good = Array.from({ length: 90 }, (_, at) => `good ${at}`);
      const names = good.flatMap((name, at) =>
        at % 5 === 0 ? [name, ...bad.slice(at / 5, at / 5 + 1)] : [name],
      );
      const created = await Promise.all(
        names.map((name, at) => {
          const input = { name, categoryId: 1 };
          return create(store, input, isOnce ? { once: `${api}-${at}` } : {});
        }),
      );
      for (const [at, { outcome }] of created.entries()) {
        const name = names[at] as string;
        const refusal = refusals.find((one) => one.name === name);
        expect(outcome).toMatchObject(refusal ? refused(refusal) : { name });
      }
      const stored = await sql<[string]>(
        store.database,
        "select name from pet where status <> 'sold' order by category_id, name",
      );
      expect(stored.flat().sort()).toEqual([...good].sort());
    },
  );

  test.each(['conflicting', 'locked'])(
    'but one that is %s fails all of its request, at once, to be sent again',
    async (name) => {
      let inserted = 0;
      const pets = new PetService(store.database);
      const outcomes = await withRows(
        store.database,
        (rows) => async (statement, values) => {
          inserted += 1;
          return rows(statement, values) as never;
        },
        () => {
          const names = Array.from({ length: 100 }, (_, at) => `good ${at}`);
          const pet = { categoryId: 1, status: 'available' };
          const inputs = [...names, name].map((name) => ({ ...pet, name }));
          return pets.createMany(inputs as never, new Call());
        },
      );
      const late = 'The database cannot answer in time; try again shortly.';
      const failure = { status: 503, message: late, retryAfter: 1 };
      for (const one of outcomes) expect(one).toMatchObject(failure);
      expect(inserted).toBe(1);
    },
  );
});

describe('a table with row security, of which PostgreSQL names no keys', () => {
  const none = { orm: undefined as never, hiding: new Map() };
  const thrown = (code: string, table: string) =>
    Object.assign(new Error('this is a test'), { code, table });

  test.each([
    ['23505', 'pet', 409, 'Another one has this value.'],
    ['23P01', 'pet', 409, 'Another one excludes this value.'],
    ['23503', 'pet', 400, 'A relation must be the id of one that exists.'],
    [
      '23503',
      'visit',
      409,
      'It cannot be removed, because others refer to it.',
    ],
    [
      '23001',
      'visit',
      409,
      'It cannot be removed, because others refer to it.',
    ],
  ])('refuses with %s of %s as %s', (code, table, status, message) => {
    const refusal = refusalIn(none, thrown(code, table), { table: 'pet' });
    expect(refusal).toMatchObject({ status, message });
  });

  test('refuses a removal to which a row of the same table refers', () => {
    const error = thrown('23503', 'pet');
    const removal = { table: 'pet', isRemoval: true };
    expect(refusalIn(none, error, removal)).toMatchObject({
      status: 409,
      message: 'It cannot be removed, because others refer to it.',
    });
  });

  test('a sequence without a further value is no fault of an input', () => {
    const error = thrown('2200H', 'pet');
    expect(refusalIn(none, error, { table: 'pet' })).toBe(error);
  });

  test('a checked text may look like a key', () => {
    const detail = 'Failing row contains (1, (name)=(x), 1).';
    const error = Object.assign(thrown('23514', 'pet'), { detail });
    const refusal = refusalIn(none, error, { table: 'pet' });
    expect(refusal).toMatchObject({ status: 400, message: rule });
  });
});

test('a policy of row security refuses with 403, a lack of rights with 500', () => {
  const denied = (routine: string) =>
    Object.assign(new Error('denied'), { code: '42501', routine });
  const policy = denied('ExecWithCheckOptions');
  const refusal = { code: 'FORBIDDEN', status: 403, message: rule };
  expect(refusalIn({} as never, policy)).toMatchObject(refusal);
  const rights = denied('aclcheck_error');
  expect(refusalIn({} as never, rights)).toBe(rights);
});

test.each([
  ...[
    ['_bt_check_third_page', 'Its texts are too long for an index.'],
    ['_hash_doinsert', 'Its texts are too long for an index.'],
    ['index_form_tuple_context', 'Its texts are too long for an index.'],
    ['GinFormTuple', 'Its texts are too long for an index.'],
    ['gistSplit', 'Its texts are too long for an index.'],
    ['spgdoinsert', 'Its texts are too long for an index.'],
    ['brin_doupdate', 'Its texts are too long for an index.'],
    ['RelationGetBufferForTuple', 'It is too large for the database.'],
    ['make_tsvector', 'It is too large for the database.'],
    ['convertJsonbArray', 'It is too large for the database.'],
  ],
])('a limit of %s is named: %s', (routine, message) => {
  const error = Object.assign(new Error('too large'), {
    code: '54000',
    routine,
  });
  const refusal = { code: 'BAD_USER_INPUT', status: 400, message };
  expect(refusalIn({} as never, error)).toMatchObject(refusal);
});

function refused({ status, message }: { status: number; message: string }) {
  return { status, message };
}
