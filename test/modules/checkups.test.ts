// runs: embedded, postgres, postgres-12, postgres-18

import { defineEntity, p } from '@mikro-orm/core';
import { MikroORM } from '@mikro-orm/postgresql';
import { type Module, openModules } from '#engine/api/module.js';
import type { Call } from '#engine/call.js';
import { StoreError } from '#engine/errors.js';
import { columnsOf } from '#engine/records/columns.js';
import {
  ListInterpreter,
  type Listing,
  parametersOf,
} from '#engine/records/lists/query.js';
import { LiveList } from '#engine/records/live-list.js';
import { Records } from '#engine/records/records.js';
import { Table } from '#engine/records/rows/table.js';
import {
  changeSchema,
  textSchema,
  withDefault,
} from '#engine/validation/schemas.js';
import { validator } from '#engine/validation/validator.js';
import { PetEntity } from '../../src/pets/pet.entity.ts';
import { petsModule } from '../../src/pets/pets.module.ts';
import { overtaken, sql } from '../support/database-access.ts';
import { openStream } from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import {
  afterAll,
  beforeAll,
  describe,
  expect,
  test,
} from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { type Store, startStore, storeForAll } from '../support/store.ts';
import { CheckupEntity, type Checkups } from './checkups/checkup.entity.ts';
import { CheckupResolver } from './checkups/checkup.resolver.ts';
import { checkupRoutes } from './checkups/checkup.routes.ts';
import {
  type Checkup,
  checkupSchema,
  type NewCheckup,
} from './checkups/checkup.schemas.ts';
import { checkupsModule } from './checkups/checkups.module.ts';

/** A module whose rows refer to another table (docs/add-a-module.md). */

// Citus allows a foreign key between distributed tables only when both are
// distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

interface Plan {
  'Node Type': string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Plan[];
}

/** The number of rows that the scans of a plan read. */
function scanned({ 'Node Type': node, Plans = [], ...plan }: Plan): number {
  const rows =
    (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) *
    plan['Actual Loops'];
  const own = /^(?:Seq|Index|Bitmap|Tid)/.test(node) ? rows : 0;
  return Plans.reduce((sum, one) => sum + scanned(one), own);
}

describeHere('checkups', () => {
  let rex = 0;
  let bello = 0;
  const addPets = async () => {
    for (const name of ['Rex', 'Bello'])
      await send('POST', '/v1/pets', { name, categoryId: 1 });
    [rex, bello] = (await send('GET', '/v1/pets')).json.map(
      ({ id }: { id: number }) => id,
    );
  };
  const store = storeForAll({}, addPets, { more: [checkupsModule] });

  const send = (method: string, path: string, json?: object, headers = {}) =>
    rest(store, path, { method, json, headers });
  const add = async (members: object = {}) =>
    (
      await send('POST', '/v1/checkups', {
        petId: rex,
        reason: 'vaccination',
        ...members,
      })
    ).json;
  const query = async (text: string, variables = {}) =>
    graphqlText(store, { query: text, variables });
  const create =
    'mutation ($input: NewCheckup!) { createCheckup(input: $input) { id petId price } }';

  const checkupCollection = () =>
    openModules(store.modules, store.database, {})
      .flatMap(({ collections = [] }) => collections)
      .find(({ name }) => name === 'checkups');

  const unknown = 9223372036854775807n;
  const noPet = 'petId must be the id of one that exists.';
  const refused = { code: 'BAD_USER_INPUT', message: noPet, status: 400 };

  test('have a foreign key, and the migration that MikroORM would write', async () => {
    expect(await store.database.orm.schema.getUpdateSchemaSQL()).toBe('');
    expect(await store.database.orm.schema.getCreateSchemaSQL()).toContain(
      'foreign key ("pet_id") references "pet" ("id") on delete cascade',
    );
  });

  test('refer to pets: another id is refused on both APIs, and the other creations of its batch are kept', async () => {
    const body = { petId: unknown, reason: 'x-ray' };
    const key = { 'idempotency-key': 'no-such-pet' };
    const responses = await Promise.all([
      send('POST', '/v1/checkups', { ...body, petId: rex }),
      send('POST', '/v1/checkups', body),
      send(
        'POST',
        '/v1/checkups',
        { ...body, petId: bello },
        { 'idempotency-key': 'bello' },
      ),
      send('POST', '/v1/checkups', body, key),
    ]);
    expect(responses.map(({ status }) => status)).toEqual([201, 400, 201, 400]);
    expect([responses[1]?.json, responses[3]?.json]).toEqual([
      refused,
      refused,
    ]);
    const { data, errors } = await query(create, {
      input: { ...body, petId: `${unknown}` },
    });
    expect([data, errors]).toEqual([
      null,
      [
        {
          message: noPet,
          path: ['createCheckup'],
          locations: expect.anything(),
          extensions: expect.anything(),
        },
      ],
    ]);
    expect(errors?.[0]?.extensions).toEqual({
      code: 'BAD_USER_INPUT',
      status: 400,
    });
  });

  test('have samples, which refer to pets that exist', async () => {
    for (const [place, petId] of [rex, bello].entries()) {
      const sample = await checkupCollection()?.sample?.(
        (members) => members[place] as never,
      );
      const { status, json } = await send('POST', '/v1/checkups', sample);
      expect([status, json.petId]).toEqual([201, petId]);
    }
  });

  describe('are filtered by any combination', () => {
    const combinations = ['', 'petId', 'state', 'petId state'].map((names) =>
      names.split(' ').filter(Boolean),
    );
    const pick = (members: string[], values: Record<string, unknown>) =>
      Object.fromEntries(members.map((name) => [name, values[name]]));

    test.each(combinations)(
      '%s %s: pages, one by one and in batches, on both APIs',
      async (...filters) => {
        const before = (await add()).id;
        const added = [];
        for (const petId of [rex, bello, rex]) {
          for (const state of ['planned', 'done', 'done'])
            added.push(await add({ petId, state }));
        }
        const list = (values: Record<string, unknown>, after: number) =>
          send(
            'GET',
            `/v1/checkups?${new URLSearchParams({ ...values, limit: '2', after: `${after}` } as never)}`,
          );
        const values = [rex, bello].flatMap((petId) =>
          ['planned', 'done'].map((state) => pick(filters, { petId, state })),
        );
        const pages = await Promise.all(
          Array.from({ length: 40 }, (_, at) =>
            list(values[at % 4] ?? {}, before),
          ),
        );
        for (const [at, { json, headers }] of pages.entries()) {
          const expected = added.filter((one) =>
            Object.entries(values[at % 4] ?? {}).every(
              ([n, v]) => one[n] === v,
            ),
          );
          expect(json).toEqual(expected.slice(0, 2));
          expect(/rel="next"/.test(`${headers.link}`)).toBe(
            expected.length > 2,
          );
          if (expected.length < 2) continue;
          expect((await list(values[at % 4] ?? {}, json[1].id)).json).toEqual(
            expected.slice(2, 4),
          );
        }
        const given = filters.map(
          (name) => `${name}: ${name === 'petId' ? `"${rex}"` : 'done'}`,
        );
        const { data } = await query(
          `{ checkups(${[...given, `after: "${before}"`]}) { id state } }`,
        );
        const ofRex = added.filter((one) =>
          Object.entries(pick(filters, { petId: rex, state: 'done' })).every(
            ([n, v]) => one[n] === v,
          ),
        );
        expect(data.checkups).toEqual(
          ofRex.map(({ id, state }) => ({ id: `${id}`, state })),
        );
      },
    );

    test('are counted by each combination', async () => {
      const records = new Records<Checkup, never>(
        store.database,
        CheckupEntity,
        { filters: ['petId', 'state'] },
      );
      const [[all, ofBello, done, both] = []] = await sql(
        store.database,
        `select count(*)::text, (count(*) filter (where pet_id = ${bello}))::text, (count(*) filter (where state = 'done'))::text,
          (count(*) filter (where pet_id = ${bello} and state = 'done'))::text from checkup`,
      );
      const queries = [
        {},
        { petId: bello },
        { state: 'done' },
        { petId: bello, state: 'done' },
      ] as const;
      const totals = await Promise.all(
        [...queries, ...queries].map((one) => records.count(one)),
      );
      const counts = [all, ofBello, done, both].map((count) => ({
        count: Number(count),
        isExact: true,
      }));
      expect(totals).toEqual([...counts, ...counts]);
    });

    test('a combination without an index keeps the service from starting', () => {
      const open = () =>
        new Records<Checkup, never>(store.database, CheckupEntity, {
          filters: ['petId', 'state', 'reason'],
        });
      expect(open).toThrow(
        "Each combination of the filters of checkup needs an index; the entity lacks { properties: ['reason', 'id'] }, { properties: ['petId', 'reason', 'id'] }, { properties: ['state', 'reason', 'id'] }, { properties: ['petId', 'state', 'reason', 'id'] }.",
      );
    });

    test('a page of 100,000 rows reads no more than itself, by custom and by generic plans', async () => {
      const { database } = store;
      await database.withSession(async (session) => {
        await session.query('begin');
        // The pets, so that PostgreSQL knows a filter on one of them to be
        // narrow.
        const { rows: pets } =
          await session.query(`insert into pet (name, category_id, status)
          select 'pet', 1, 'sold' from generate_series(1, 50) returning id`);
        const least = Number(pets[0].id);
        // In parts, so that a busy server cancels none of them.
        for (let added = 0; added < 100_000; added += 5000)
          await session.query(`insert into checkup (pet_id, reason, state)
            select ${least} + n % 50, 'x', case when n % 7 = 0 then 'done' else 'planned' end
            from generate_series(${added + 1}, ${added + 5000}) n`);
        await session.query('analyze checkup');
        const columns = new Table(database.orm.getMetadata(CheckupEntity));
        const listings = new ListInterpreter(columns, {
          filters: ['petId', 'state'],
        });
        const [pet, state] = [least + 7, 'done'];
        const queries = [{}, { petId: pet }, { state }, { petId: pet, state }];
        const read = async (text: string, parameters: unknown[]) => {
          await session.query(`prepare listing as ${text}`);
          const literals = parameters.map(
            (one) =>
              `'${Array.isArray(one) ? `{${one.map((v) => v ?? 'null')}}` : one}'`,
          );
          const { rows } = await session.query(
            `explain (analyze, format json) execute listing(${literals})`,
          );
          await session.query('deallocate listing');
          return scanned(rows[0]['QUERY PLAN'][0].Plan);
        };
        const positions = { id: 500, id_desc: 1e12 };
        // A page has 21; plans depend on samples.
        const mostRead = 2 * 21;
        const cases = Object.entries(positions).flatMap((one) =>
          ['custom', 'generic'].map((mode) => [...one, mode] as const),
        );
        for (const [order, position, mode] of cases) {
          await session.query(`set local plan_cache_mode = force_${mode}_plan`);
          const lists = queries.map((query) =>
            listings.interpret({
              ...query,
              limit: 20,
              sort: order,
              after: position,
            }),
          );
          for (const list of lists) {
            const { page } = list.shape;
            const rows = await read(page.text, parametersOf(page, list));
            expect(rows).toBeLessThanOrEqual(mostRead);
          }
          const many = listings.together((lists[0] as Listing).shape);
          const parameters = lists.map((list) => parametersOf(many, list));
          const columns = many.slots.map((_, at) =>
            parameters.map((values) => values[at]),
          );
          const rows = await read(many.text, columns);
          expect(rows).toBeLessThanOrEqual(queries.length * mostRead);
        }
        await session.query('rollback');
      });
    });
  });

  test('are nested in pets newest first, with a filter', async () => {
    const states = ['planned', 'done', 'planned'];
    for (const state of states) await add({ petId: bello, state });
    const { data } = await query(
      '{ pets { checkups(sort: id_desc, limit: 3) { state } planned: checkups(sort: id_desc, limit: 2, state: planned) { state } } }',
    );
    const planned = { state: 'planned' };
    const both = {
      checkups: [planned, { state: 'done' }, planned],
      planned: [planned, planned],
    };
    expect(data.pets).toContainEqual(both);
  });

  test('are nested in pets, and pets in them', async () => {
    const { id } = await add({ petId: bello });
    const { data } = await query(
      `{ checkup(id: "${id}") { petId pet { name checkups(limit: 100, after: "${id - 1}") { id pet { id } } } } }`,
    );
    const nested = {
      name: 'Bello',
      checkups: [{ id: `${id}`, pet: { id: `${bello}` } }],
    };
    expect(data).toEqual({ checkup: { petId: `${bello}`, pet: nested } });
  });

  describe('are changed', () => {
    const noCheckup = (id: unknown) => ({
      code: 'NOT_FOUND',
      message: `There is no checkup with the id ${id}.`,
      status: 404,
    });
    const badInput = (message: string) => ({
      code: 'BAD_USER_INPUT',
      message,
      status: 400,
    });
    const mutation = `mutation ($id: ID!, $change: CheckupChange!) {
      changeCheckup(id: $id, change: $change) { id reason state note price version } }`;
    /**
     * A change on one of the APIs: the changed members, or the error as REST
     * has it.
     */
    const changes = {
      async REST(
        id: unknown,
        version: number,
        change: object,
      ): Promise<unknown> {
        const { json } = await send('PATCH', `/v1/checkups/${id}`, {
          version,
          ...change,
        });
        const { petId: _, ...others } = json;
        return others;
      },
      async GraphQL(
        id: unknown,
        version: number,
        change: object,
      ): Promise<unknown> {
        const { data, errors } = await query(mutation, {
          id: `${id}`,
          change: { version, ...change },
        });
        if (data)
          return { ...data.changeCheckup, id: Number(data.changeCheckup.id) };
        return { ...errors?.[0]?.extensions, message: errors?.[0]?.message };
      },
    };

    describe.each(['REST', 'GraphQL'] as const)('by %s', (api) => {
      const change = changes[api];

      test('a member that is absent stays, one that is null is cleared, and the version rises', async () => {
        const { id } = await add({ note: 'fine', price: '9.5' });
        const members = {
          id,
          reason: 'vaccination',
          state: 'planned',
          note: 'fine',
          price: '9.50',
        };
        expect(await change(id, 1, { state: 'done' })).toEqual({
          ...members,
          state: 'done',
          version: 2,
        });
        const cleared = {
          ...members,
          state: 'done',
          note: null,
          price: '-0.10',
          version: 3,
        };
        expect(await change(id, 2, { note: null, price: '-0.1' })).toEqual(
          cleared,
        );
        expect((await send('GET', `/v1/checkups/${id}`)).json).toEqual({
          ...cleared,
          petId: rex,
        });
      });

      test('another version is a conflict that tells the current one, and nothing is changed', async () => {
        const { id } = await add();
        await change(id, 1, { note: 'first' });
        const message = 'It has version 2, not 1: read it again.';
        const conflict = { code: 'CONFLICT', message, status: 409, version: 2 };
        expect(await change(id, 1, { note: 'second' })).toEqual(conflict);
        expect((await send('GET', `/v1/checkups/${id}`)).json).toMatchObject({
          note: 'first',
          version: 2,
        });
      });

      test('of changes that read the same version one wins, and the others are told its version', async () => {
        const { id } = await add();
        const results = await Promise.all(
          Array.from({ length: 12 }, (_, at) =>
            change(id, 1, { note: `${at}` }),
          ),
        );
        expect(
          results.filter(
            (one) => (one as { code?: string }).code === undefined,
          ),
        ).toHaveLength(1);
        const message = 'It has version 2, not 1: read it again.';
        const conflicts = results.filter(
          (one) => (one as { code?: string }).code !== undefined,
        );
        expect(conflicts).toEqual(
          Array(11).fill({
            code: 'CONFLICT',
            message,
            status: 409,
            version: 2,
          }),
        );
      });

      test('there is no such checkup', async () => {
        for (const id of [
          '9223372036854775807',
          '-9223372036854775808',
          'x',
          '9223372036854775808',
        ]) {
          expect(await change(id, 1, { note: 'x' })).toEqual(noCheckup(id));
          expect((await send('GET', `/v1/checkups/${id}`)).json).toEqual(
            noCheckup(id),
          );
        }
      });

      test('version 1 follows the greatest one', async () => {
        const { id } = await add();
        await sql(
          store.database,
          `update checkup set version = 2147483647 where id = ${id}`,
        );
        expect(await change(id, 2147483647, { note: 'x' })).toMatchObject({
          note: 'x',
          version: 1,
        });
        expect(await change(id, 1, { note: 'y' })).toMatchObject({
          note: 'y',
          version: 2,
        });
      });

      test('an empty change, null in a member that cannot be null, and invalid members are refused', async () => {
        const { id } = await add();
        expect(await change(id, 1, {})).toEqual(
          badInput('The change names no member to change.'),
        );
        expect(await change(id, 1, { reason: null })).toEqual(
          badInput('reason must be a string, not null.'),
        );
        expect(await change(id, 1, { reason: 'x' })).toEqual(
          badInput('reason must be 3 to 1000 characters long.'),
        );
        expect((await send('GET', `/v1/checkups/${id}`)).json.version).toBe(1);
      });
    });

    test('a member that cannot be changed is refused, and so is a change without a version', async () => {
      const { id } = await add();
      const patch = async (json: object) =>
        (await send('PATCH', `/v1/checkups/${id}`, json)).json;
      expect(await patch({ version: 1, petId: bello, note: 'x' })).toEqual(
        badInput('petId cannot be changed.'),
      );
      expect(await patch({ note: 'x' })).toEqual(
        badInput('version is required.'),
      );
      const { errors } = await query(mutation, {
        id,
        change: { version: 1, petId: bello },
      });
      expect(errors?.[0]?.extensions).toEqual({
        code: 'BAD_USER_INPUT',
        status: 400,
      });
    });

    test('a repeated change is a conflict, so none takes an Idempotency-Key', async () => {
      const { id } = await add();
      const path = `/v1/checkups/${id}`;
      const key = { 'idempotency-key': 'once' };
      const message =
        'This operation takes no Idempotency-Key: a repeated request is carried out again.';
      expect(
        (await send('PATCH', path, { version: 1, note: 'x' }, key)).json,
      ).toEqual(badInput(message));
      expect((await send('DELETE', path, undefined, key)).json).toEqual(
        badInput(message),
      );
      expect((await send('GET', path)).json.version).toBe(1);
    });

    test('a default fills in no member that is absent, and the contract names none', () => {
      const [name, note] = [
        withDefault(textSchema({ description: 'Its name.' }), 'none'),
        textSchema({ description: '' }),
      ];
      const schema = changeSchema({ name, note }, { $id: 'NoteChange' });
      expect(validator(schema)({ version: 1, note: 'x' })).toEqual({
        version: 1,
        note: 'x',
      });
      expect(schema.properties.name).toEqual({
        type: 'string',
        description: 'Its name.',
        maxLength: 1000,
      });
      expect(schema.required).toEqual(['version']);
    });

    test('If-Match is refused, because no entity tag here is a strong one', async () => {
      const path = `/v1/checkups/${(await add()).id}`;
      const { etag } = (await send('GET', path)).headers;
      expect(etag).toMatch(/^W\//);
      const refusal = badInput(
        'If-Match is not supported: send the version that you have read.',
      );
      for (const tag of [`${etag}`, '"1"', '*']) {
        const headers = { 'if-match': tag };
        expect(
          (await send('PATCH', path, { version: 1, note: 'x' }, headers)).json,
        ).toEqual(refusal);
        expect((await send('DELETE', path, undefined, headers)).json).toEqual(
          refusal,
        );
      }
      expect((await send('GET', path)).json).toMatchObject({
        note: null,
        version: 1,
      });
    });

    test('are removed, with a version only if they have it', async () => {
      const [one, other] = [await add(), await add()];
      const conflict = {
        code: 'CONFLICT',
        message: 'It has version 1, not 2: read it again.',
        status: 409,
        version: 1,
      };
      expect(
        (await send('DELETE', `/v1/checkups/${one.id}?version=2`)).json,
      ).toEqual(conflict);
      expect(
        (await send('DELETE', `/v1/checkups/${one.id}?version=1`)).status,
      ).toBe(204);
      expect((await send('DELETE', `/v1/checkups/${one.id}`)).json).toEqual(
        noCheckup(one.id),
      );
      expect((await send('DELETE', '/v1/checkups/x')).json).toEqual(
        noCheckup('x'),
      );
      expect(
        (await send('DELETE', `/v1/checkups/${other.id}?vversion=1`)).json,
      ).toEqual(badInput('vversion is unknown.'));
      const remove = (version?: number) =>
        query(
          'mutation ($id: ID!, $v: Int) { removeCheckup(id: $id, version: $v) }',
          {
            id: `${other.id}`,
            v: version,
          },
        );
      const invalid = badInput(
        'version must be an integer between 1 and 2147483647.',
      );
      expect(
        (await send('DELETE', `/v1/checkups/${other.id}?version=-5`)).json,
      ).toEqual(invalid);
      expect((await remove(-5)).errors).toMatchObject([
        { message: invalid.message, extensions: { code: invalid.code } },
      ]);
      const { message, ...extensions } = conflict;
      expect((await remove(2)).errors).toMatchObject([{ message, extensions }]);
      expect((await remove()).data).toEqual({ removeCheckup: true });
      expect((await remove()).errors).toMatchObject([
        {
          message: noCheckup(other.id).message,
          extensions: { code: 'NOT_FOUND' },
        },
      ]);
    });

    test.each(['', 'on delete restrict'])(
      'a row to which others refer is not removed (%s)',
      async (rule) => {
        await sql(
          store.database,
          `create table bill (checkup_id bigint references checkup (id) ${rule})`,
        );
        const { id } = await add();
        await sql(store.database, `insert into bill values (${id})`);
        const message = 'It cannot be removed, because others refer to it.';
        const refusal = { code: 'CONFLICT', message, status: 409 };
        expect((await send('DELETE', `/v1/checkups/${id}`)).json).toEqual(
          refusal,
        );
        await sql(store.database, 'drop table bill');
        expect((await send('DELETE', `/v1/checkups/${id}`)).status).toBe(204);
      },
    );

    test('a second row with the key of a unique index is a conflict', async () => {
      await sql(
        store.database,
        'create unique index once on checkup (pet_id, reason) where reason = $$unique$$',
      );
      const { id } = await add({ reason: 'unique' });
      const message = 'Another one has this petId and reason.';
      const refusal = { code: 'CONFLICT', message, status: 409 };
      expect(await add({ reason: 'unique' })).toEqual(refusal);
      const { id: other } = await add();
      expect(
        (
          await send('PATCH', `/v1/checkups/${other}`, {
            version: 1,
            reason: 'unique',
          })
        ).json,
      ).toEqual(refusal);
      await sql(store.database, 'drop index once');
      await send('DELETE', `/v1/checkups/${id}`);
    });

    test('a follower is told of neither, and reads the rows as they are when it comes to them', async () => {
      const [first, second, third] = [await add(), await add(), await add()];
      const follow =
        'subscription ($after: ID!) { checkupAdded(after: $after, state: planned) { id note } }';
      const stream = await openStream(store, {
        body: { query: follow, variables: { after: `${first.id}` } },
      });
      await stream.until(2);
      await send('PATCH', `/v1/checkups/${second.id}`, {
        version: 1,
        note: 'late',
      });
      await send('PATCH', `/v1/checkups/${third.id}`, {
        version: 1,
        state: 'done',
      });
      await send('DELETE', `/v1/checkups/${first.id}`);
      const fourth = await add();
      const seen = (await stream.until(3)).map(
        ({ data }) => data.data.checkupAdded,
      );
      expect(seen).toEqual(
        [second, third, fourth].map(({ id }) => ({ id: `${id}`, note: null })),
      );
      stream.close();
      const again = await openStream(store, {
        body: { query: follow, variables: { after: `${first.id}` } },
      });
      const now = (await again.until(2)).map(
        ({ data }) => data.data.checkupAdded,
      );
      expect(now).toEqual([
        { id: `${second.id}`, note: 'late' },
        { id: `${fourth.id}`, note: null },
      ]);
      again.close();
    });
  });

  test('disappear with their pet', async () => {
    const { json: pet } = await send('POST', '/v1/pets', {
      name: 'Milo',
      categoryId: 1,
    });
    const { id } = await add({ petId: pet.id });
    await sql(store.database, `delete from pet where id = ${pet.id}`);
    expect((await send('GET', `/v1/checkups/${id}`)).status).toBe(404);
  });

  describe('have an exact price', () => {
    const digits = '123456789012345678901234567890123456.78';

    test.each([
      ['0.1', '0.10'],
      ['12', '12.00'],
      ['-0.0', '0.00'],
      ['-7.25', '-7.25'],
      [digits, digits],
    ])('%s is read as %s on both APIs', async (given, read) => {
      const added = await add({ price: given });
      expect(added.price).toBe(read);
      expect((await send('GET', `/v1/checkups/${added.id}`)).json.price).toBe(
        read,
      );
      const input = { petId: `${rex}`, reason: 'price', price: given };
      const { data } = await query(create, { input });
      expect(data.createCheckup.price).toBe(read);
      const found = await query(
        `{ checkup(id: "${data.createCheckup.id}") { price } }`,
      );
      expect(found.data).toEqual({ checkup: { price: read } });
      const key = { 'idempotency-key': `price-${given}` };
      const body = { petId: rex, reason: 'price', price: given };
      const twice = [
        await send('POST', '/v1/checkups', body, key),
        await send('POST', '/v1/checkups', { ...body, price: read }, key),
      ];
      expect(twice.map(({ json }) => [json.price, json.id])).toEqual(
        Array(2).fill([read, twice[0]?.json.id]),
      );
    });

    test('0.1 and 0.2 are 0.3', async () => {
      const ids = [
        await add({ price: '0.1' }),
        await add({ price: '0.2' }),
      ].map(({ id }) => id);
      expect(
        await sql(
          store.database,
          `select sum(price)::text from checkup where id in (${ids})`,
        ),
      ).toEqual([['0.30']]);
    });

    test.each<[unknown, string]>([
      ...['0.001', '1e3', '', '.5', '01', '1'.repeat(37), '1'.repeat(41)].map(
        (text): [string, string] => [
          text,
          'a decimal of at most 36 digits before the point and 2 after it',
        ],
      ),
      [0.5, 'a string'],
    ])('%j is refused on both APIs', async (price, must) => {
      const message = `price must be ${must}, or null${typeof price === 'string' ? '' : ', not a number'}.`;
      const { json } = await send('POST', '/v1/checkups', {
        petId: rex,
        reason: 'price',
        price,
      });
      expect(json).toEqual({ ...refused, message });
      const { errors } = await query(create, {
        input: { petId: `${rex}`, reason: 'price', price },
      });
      expect(errors).toMatchObject([
        { message, extensions: { code: 'BAD_USER_INPUT', status: 400 } },
      ]);
    });
  });

  describe('with a rule', () => {
    let isOpen = true;
    const callers: unknown[] = [];
    const check = async (
      { price, state }: Partial<NewCheckup>,
      _call: Call,
      stored?: Checkup,
    ) => {
      if (!isOpen && price)
        throw new StoreError('BAD_USER_INPUT', 'The till is closed.');
      if (stored?.state === 'done' && state === 'planned')
        throw new StoreError('CONFLICT', 'A checkup that is done stays so.');
    };
    const checkRemoval = async ({ state }: Checkup) => {
      if (state === 'done')
        throw new StoreError('CONFLICT', 'A checkup that is done is kept.');
    };
    const open: Module['open'] = ({ database, serviceOf }) => {
      const checkups: Checkups = new Records(database, CheckupEntity, {
        filters: ['petId', 'state'],
        check(members, call, stored) {
          callers.push(call.caller);
          return check(members, call, stored);
        },
        checkRemoval(stored, call) {
          callers.push(call.caller);
          return checkRemoval(stored);
        },
      });
      const resolver = new CheckupResolver(
        checkups,
        new LiveList(checkups),
        serviceOf(petsModule),
      );
      return {
        routes: (app) => checkupRoutes(app, checkups),
        resolvers: [resolver],
      };
    };
    let ruled: Store;
    beforeAll(async () => {
      ruled = await startStore({}, { more: [{ ...checkupsModule, open }] });
    });
    afterAll(() => ruled.close());

    test('it holds for creations and changes on both APIs, and a replay is answered as at first', async () => {
      const ask = (method: string, path: string, json?: object, headers = {}) =>
        rest(ruled, path, { method, json, headers });
      const { json: pet } = await ask('POST', '/v1/pets', {
        name: 'Rex',
        categoryId: 1,
      });
      const input = { petId: pet.id, reason: 'vaccination', price: '1.00' };
      const create =
        'mutation ($input: NewCheckup!) { createCheckup(input: $input) { id price } }';
      const createBy = (headers = {}) =>
        graphqlText(
          ruled,
          { query: create, variables: { input } },
          ruled.key,
          headers as Record<string, string>,
        );
      const [key, other] = [
        { 'idempotency-key': 'first' },
        { 'idempotency-key': 'second' },
      ];
      isOpen = true;
      const first = await ask('POST', '/v1/checkups', input, key);
      expect(first.status).toBe(201);
      isOpen = false;
      const message = 'The till is closed.';
      const refusal = { code: 'BAD_USER_INPUT', message, status: 400 };
      const replayed = await ask('POST', '/v1/checkups', input, key);
      expect([replayed.text, replayed.headers['idempotent-replayed']]).toEqual([
        first.text,
        'true',
      ]);
      expect((await createBy(key)).data).toEqual({
        createCheckup: { id: `${first.json.id}`, price: '1.00' },
      });
      const reused = await ask(
        'POST',
        '/v1/checkups',
        { ...input, price: '2.00' },
        key,
      );
      expect(reused.json.code).toBe('IDEMPOTENCY_KEY_REUSED');
      for (const headers of [{}, other]) {
        expect(
          (await ask('POST', '/v1/checkups', input, headers)).json,
        ).toEqual(refusal);
        expect((await createBy(headers)).errors).toMatchObject([
          { message, extensions: { code: refusal.code } },
        ]);
      }
      const path = `/v1/checkups/${first.json.id}`;
      expect(
        (await ask('PATCH', path, { version: 1, price: '3.00' })).json,
      ).toEqual(refusal);
      const change = `mutation { changeCheckup(id: "${first.json.id}", change: { version: 1, price: "3.00" }) { id } }`;
      expect(
        (await graphqlText(ruled, { query: change })).errors,
      ).toMatchObject([{ message }]);
      expect(
        (await ask('PATCH', path, { version: 1, note: 'unpaid' })).json,
      ).toMatchObject({ note: 'unpaid' });
      const ofPet = await ask('GET', `/v1/checkups?petId=${pet.id}`);
      expect(ofPet.json).toHaveLength(1);
      isOpen = true;
      expect((await ask('POST', '/v1/checkups', input, other)).status).toBe(
        201,
      );
    });

    test('it sees the item before a change and a removal, and who calls, on both APIs', async () => {
      const ask = (method: string, path: string, json?: object) =>
        rest(ruled, path, { method, json });
      const { json: pet } = await ask('POST', '/v1/pets', {
        name: 'Rex',
        categoryId: 1,
      });
      const input = { petId: pet.id, reason: 'vaccination', state: 'done' };
      callers.length = 0;
      const { json } = await ask('POST', '/v1/checkups', input);
      const path = `/v1/checkups/${json.id}`;
      const conflict = (message: string) => ({
        code: 'CONFLICT',
        status: 409,
        message,
      });
      const done = 'A checkup that is done stays so.';
      const kept = 'A checkup that is done is kept.';
      const change = { version: 1, state: 'planned' };
      expect((await ask('PATCH', path, change)).json).toEqual(conflict(done));
      expect((await ask('DELETE', path)).json).toEqual(conflict(kept));
      expect((await ask('DELETE', `${path}?version=1`)).json).toEqual(
        conflict(kept),
      );
      for (const [message, field] of [
        [
          done,
          `changeCheckup(id: "${json.id}", change: { version: 1, state: planned }) { id }`,
        ],
        [kept, `removeCheckup(id: "${json.id}")`],
      ]) {
        const { errors } = await graphqlText(ruled, {
          query: `mutation { ${field} }`,
        });
        const extensions = { code: 'CONFLICT', status: 409 };
        expect(errors).toMatchObject([{ message, extensions }]);
      }
      expect(callers).toHaveLength(6);
      const { id } = (await ruled.keys.list())[0] ?? {};
      const caller = { id, name: 'test', scopes: ['write'] };
      for (const one of callers) expect(one).toMatchObject(caller);
      // Another version is refused as such: the rule sees the one it is for,
      // and none is written that comes meanwhile.
      const next = `update checkup set version = 2 where id = ${json.id}`;
      const tried = (query: string) => graphqlText(ruled, { query });
      for (const send of [
        () => ask('PATCH', path, { ...change, version: 2 }),
        () => ask('DELETE', `${path}?version=2`),
        () =>
          tried(
            `mutation { changeCheckup(id: "${json.id}", change: { version: 2, state: planned }) { id } }`,
          ),
        () => tried(`mutation { removeCheckup(id: "${json.id}", version: 2) }`),
      ]) {
        const answer = await overtaken<any>(ruled.database, next, send);
        const refusal = answer.json ?? answer.errors[0].extensions;
        expect(refusal).toMatchObject({ code: 'CONFLICT', version: 1 });
      }
      const missing = '/v1/checkups/9007199254740993';
      expect((await ask('PATCH', missing, change)).status).toBe(404);
      expect((await ask('DELETE', missing)).status).toBe(404);
      expect(callers).toHaveLength(6);
    });

    test('an item that changes after the rule has seen it is neither changed nor removed', async () => {
      const { database } = ruled;
      let meanwhile = async () => undefined as unknown;
      const records: Checkups = new Records(database, CheckupEntity, {
        check: async () => meanwhile() as Promise<void>,
        checkRemoval: async () => meanwhile() as Promise<void>,
      });
      const { id: petId } = await ruled.app
        .inject({
          method: 'POST',
          url: '/v1/pets',
          headers: { authorization: `Bearer ${ruled.key}` },
          payload: { name: 'Rex', categoryId: 1 },
        })
        .then((response) => response.json());
      const created = await records.create({
        petId,
        reason: 'x-ray',
        state: 'planned',
      } as never);
      const { id } = created;
      meanwhile = () =>
        sql(
          database,
          `update checkup set state = 'done', version = version + 1 where id = ${id}`,
        );
      const change = { version: 1, note: 'x' } as never;
      await expect(records.change(id, change)).rejects.toMatchObject({
        code: 'CONFLICT',
        details: { version: 2 },
      });
      await expect(records.remove(id, {} as never)).rejects.toMatchObject({
        code: 'CONFLICT',
        details: { version: 3 },
      });
      expect(await records.find(id)).toMatchObject({
        state: 'done',
        note: null,
      });
    });
  });

  test.each([
    [
      'without an index',
      ['state', 'id'],
      'cascade',
      "bare.petId needs an index that begins with it: ['petId', 'id'].",
    ],
    [
      'cleared by a removal',
      ['petId', 'id'],
      'set null',
      "bare.petId must be nullable for its deleteRule 'set null'.",
    ],
  ] as const)(
    'a relation that is %s and not nullable keeps the service from starting',
    (_, index, rule, message) => {
      const petId = () => p.manyToOne(PetEntity).mapToPk().deleteRule(rule);
      const bare = defineEntity({
        name: 'Bare',
        tableName: 'bare',
        properties: { ...columnsOf(checkupSchema), petId },
        indexes: [{ properties: [...index] }],
      });
      const orm = new MikroORM({ entities: [PetEntity, bare], dbName: 'none' });
      expect(() => new Table(orm.getMetadata(bare))).toThrow(message);
    },
  );
});
