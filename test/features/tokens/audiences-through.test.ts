// runs: embedded, postgres, postgres-12, postgres-18

import { hash, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openModules } from '#engine/api/module.js';
import type { Collection } from '#engine/api/resources/collection.js';
import type { Database } from '#engine/database/database.js';
import { namingAllFaults } from '#engine/errors.js';
import { importFile } from '#engine/features/transfer/import.js';
import { Records } from '#engine/records/records.js';
import {
  billModules,
  LineEntity,
  line,
} from '../../modules/bills/bills.module.ts';
import { overtaken, sql, withRows } from '../../support/database-access.ts';
import { openStream } from '../../support/events.ts';
import { newFolder } from '../../support/folder.ts';
import { graphqlText } from '../../support/graphql.ts';
import {
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { statementsOf } from '../../support/statements.ts';
import { storeForAll } from '../../support/store.ts';
import { callTool } from '../assistants/mcp.ts';
import { providerForAll } from './provider.ts';

/** Lines belong to whom their bills belong, on every path of both APIs. */

const members = 'id title amount cost billId clerk firm version';
const callers: Record<string, { sub: string; org: string; scope: string }> = {
  'staff a': { sub: 'staff', org: 'a', scope: 'bills' },
  'ann a': { sub: 'ann', org: 'a', scope: 'buyers' },
  'bea a': { sub: 'bea', org: 'a', scope: 'buyers' },
  'clerk ann': { sub: 'ann', org: 'a', scope: 'clerks' },
  'cid a': { sub: 'cid', org: 'a', scope: 'writers' },
  'ann writes': { sub: 'ann', org: 'a', scope: 'clerks writers' },
  'cid reads': { sub: 'cid', org: 'a', scope: 'clerks peers' },
  'ann reads': { sub: 'ann', org: 'a', scope: 'buyers readers' },
  'staff b': { sub: 'staff', org: 'b', scope: 'bills' },
  'ann b': { sub: 'ann', org: 'b', scope: 'buyers' },
  support: { sub: 'sue', org: 'a', scope: 'bills support' },
};
/** What each sees, by title. */
const seen: Record<string, string[]> = {
  'staff a': ['of ann', 'of bea', 'of none', 'loose'],
  'ann a': ['of ann'],
  'bea a': ['of bea'],
  'clerk ann': ['of ann'],
  'cid a': ['of bea'],
  'ann writes': ['of ann'],
  'staff b': ['of ann b'],
  'ann b': ['of ann b'],
  support: ['of ann', 'of bea', 'of none', 'loose', 'of ann b'],
};
const names = Object.keys(seen);
const hidden: Record<string, string> = {
  'ann a': 'cost',
  'bea a': 'cost',
  'ann b': 'cost',
  'cid a': 'amount',
};
const refusal = {
  code: 'BAD_USER_INPUT',
  status: 400,
  message: 'bill_login must be that of the caller.',
};
const noBill = {
  code: 'BAD_USER_INPUT',
  status: 400,
  message: 'billId must be the id of one that exists.',
};
const absent = (id: unknown) => ({
  code: 'NOT_FOUND',
  status: 404,
  message: `There is no line with the id ${id}.`,
});

const namesOfLine = 'title,amount,cost,billId,clerk,firm,version';
/** Of the members of a line, in their order. */
const digestOf = (members: object) =>
  hash('sha256', JSON.stringify(Object.entries(members)), 'buffer');

interface Answer {
  item?: unknown;
  items?: unknown[];
  total?: number;
  error?: object;
}

const describeHere = citusLayout ? describe.skip : describe;
describeHere('lines of bills', () => {
  const provider = providerForAll();
  const env: Record<string, string> = {};
  beforeAll(() =>
    Object.assign(env, provider.env, {
      JWT_TENANT: 'org',
      MCP: 'true',
      GRAPHQL_FEDERATION: 'true',
      JWT_SCOPES:
        'bills=bills:write,buyers=buyers:write,clerks=clerks:write,writers=writers:write,readers=readers:write,peers=writers:read,support=bills:all',
    }),
  );
  const store = storeForAll(env, undefined, { more: billModules });
  let bills: Record<string, any> = {};
  let rows: Record<string, any> = {};

  const keyOf = (caller: string) => provider.token({ ...callers[caller] });
  const ask = (
    caller: string,
    path: string,
    method = 'GET',
    json?: object,
    headers = {},
  ) => rest(store, `/v1${path}`, { method, json, headers, key: keyOf(caller) });
  const query = (caller: string, text: string, headers = {}) =>
    graphqlText(store, { query: text }, keyOf(caller), headers);

  beforeEach(async () => {
    await sql(store.database, 'delete from line');
    await sql(store.database, 'delete from bill');
    bills = {};
    rows = {};
    const addBill = async (by: string, name: string, login: string | null) => {
      bills[name] = (await ask(by, '/bills', 'POST', { login })).json;
    };
    await addBill('staff a', 'ann', 'ann');
    await addBill('staff a', 'bea', 'bea');
    await addBill('staff a', 'none', null);
    await addBill('staff b', 'ann b', 'ann');
    const add = async (by: string, name: string, more = {}) => {
      const billId = bills[name]?.id;
      const title = billId ? `of ${name}` : name;
      const json = { title, amount: 5, cost: 'low', billId, ...more };
      rows[title] = (await ask(by, '/lines', 'POST', json)).json;
    };
    await add('staff a', 'ann');
    await add('staff a', 'bea', { clerk: 'cid' });
    await add('staff a', 'none');
    await add('staff a', 'loose');
    await add('staff b', 'ann b');
  });

  const handOver = (name: string, login: string) =>
    sql(store.database, 'update bill set login = $2 where id = $1', [
      bills[name].id,
      login,
    ]);
  /** Does work before the first line that is written. */
  const whenWriting = (work: () => Promise<unknown>) => {
    let done: Promise<unknown> | undefined;
    return (rows: Database['rows']): Database['rows'] =>
      async (statement, values) => {
        const isOfLines = /^(insert|change)_.*line/.test(`${statement.name}`);
        if (isOfLines) done ??= work();
        if (isOfLines) await done;
        return rows(statement, values) as never;
      };
  };

  /** An item as a caller sees it, in one form for both APIs. */
  const shapeOf = (item: any) => {
    if (!item) return null;
    const values = members.split(' ').map((name) => {
      const value = item[name] ?? null;
      return [name, /id$/i.test(name) && value ? `${value}` : value];
    });
    return Object.fromEntries(values);
  };
  const shown = (caller: string, title: string, hides = hidden[caller]) => {
    const item = { ...rows[title] };
    if (hides) delete item[hides];
    return item;
  };
  const ofRest = ({ status, json }: any, isList = false): Answer => {
    if (status >= 400) return { error: json };
    return isList ? { items: json.map(shapeOf) } : { item: shapeOf(json) };
  };
  const ofGraphQL = ({ data, errors }: any): Answer => {
    if (!errors) return { item: shapeOf(data.line) };
    const [{ message, extensions }] = errors;
    const { code, status } = extensions;
    return { error: { code, status, message } };
  };
  const literal = (value: object) =>
    Object.entries(value)
      .map(([name, one]) => {
        if (name === 'sort') return `${name}: ${one}`;
        const text = /Id$/.test(name) && one !== null ? `${one}` : one;
        return `${name}: ${JSON.stringify(text)}`;
      })
      .join(', ');
  const apis = [
    {
      name: 'REST',
      async list(caller: string, given: Record<string, string | number>) {
        const text = new URLSearchParams(given as Record<string, string>);
        const path = `/lines?${text}`;
        const prefer = { prefer: 'count=exact' };
        const answer = await ask(caller, path, 'GET', undefined, prefer);
        const total = Number(answer.headers['x-total-count']);
        return { ...ofRest(answer, true), total };
      },
      find: async (caller: string, id: unknown) =>
        ofRest(await ask(caller, `/lines/${id}`)),
      create: async (caller: string, json: object, headers = {}) =>
        ofRest(await ask(caller, '/lines', 'POST', json, headers)),
      change: async (caller: string, id: unknown, json: object) =>
        ofRest(await ask(caller, `/lines/${id}`, 'PATCH', json)),
      empty: async (caller: string, id: unknown) =>
        ofRest(await ask(caller, `/lines/${id}/empty`, 'POST')),
      async remove(caller: string, id: unknown, version?: number) {
        const at = version ? `?version=${version}` : '';
        return ofRest(await ask(caller, `/lines/${id}${at}`, 'DELETE'));
      },
    },
    {
      name: 'GraphQL',
      async list(caller: string, given: Record<string, string | number>) {
        const args =
          given.limit === undefined ? { limit: 20, ...given } : given;
        const { limit, ...others } = args;
        const size = args.before === undefined ? 'first' : 'last';
        const text = literal({ [size]: limit, ...others });
        const { data } = await query(
          caller,
          `{ linesConnection(${text}) { totalCount nodes { ${members} } } }`,
        );
        const { totalCount: total, nodes } = data.linesConnection;
        return { items: nodes.map(shapeOf), total };
      },
      async find(caller: string, id: unknown) {
        const text = `{ line(id: "${id}") { ${members} } }`;
        const { data } = await query(caller, text);
        return data.line ? { item: shapeOf(data.line) } : { error: absent(id) };
      },
      create: async (caller: string, input: object, headers = {}) =>
        ofGraphQL(
          await query(
            caller,
            `mutation { line: createLine(input: { ${literal(input)} }) { ${members} } }`,
            headers,
          ),
        ),
      change: async (caller: string, id: unknown, change: object) =>
        ofGraphQL(
          await query(
            caller,
            `mutation { line: changeLine(id: "${id}", change: { ${literal(change)} }) { ${members} } }`,
          ),
        ),
      empty: async (caller: string, id: unknown) =>
        ofGraphQL(
          await query(
            caller,
            `mutation { line: emptyLine(id: "${id}") { ${members} } }`,
          ),
        ),
      async remove(caller: string, id: unknown, version?: number) {
        const at = version ? `, version: ${version}` : '';
        const text = `mutation { removeLine(id: "${id}"${at}) }`;
        const answer = await query(caller, text);
        return answer.errors ? ofGraphQL(answer) : { item: null };
      },
    },
  ];

  describe.each(apis)('through $name', (api) => {
    test.each(names)(
      '%s lists, counts and filters its lines',
      async (caller) => {
        const own = (seen[caller] ?? []).map((title) =>
          shapeOf(shown(caller, title)),
        );
        const ofAnn = own.filter((one) =>
          ['of ann', 'of ann b'].includes(one.title),
        );
        const cases: Array<[Record<string, string | number>, unknown[]]> = [
          [{}, own],
          [{ limit: 1 }, own.slice(0, 1)],
          [{ after: own[0].id }, own.slice(1)],
          [{ before: '9999999' }, own],
        ];
        if (hidden[caller] !== 'amount')
          cases.push(
            [{ sort: 'amount' }, own],
            [{ sort: 'amount_desc' }, own.toReversed()],
            [{ amount_gte: 5, amount_lte: 5 }, own],
            [{ amount_gt: 5 }, []],
          );
        // A writer sees no bill.
        if (caller !== 'cid a') cases.push([{ bill_login: 'ann' }, ofAnn]);
        for (const { id, firm, login } of Object.values(bills)) {
          const of = own.filter(({ billId }) => billId === `${id}`);
          cases.push([{ billId: Number(id) }, of]);
          expect(of.every((one) => one.firm === firm)).toBe(true);
          expect(login ?? null).toBe(login);
        }
        for (const [given, items] of cases) {
          const { limit, after, before, ...filters } = given;
          const answer = await api.list(caller, given);
          expect([given, answer.items]).toEqual([given, items]);
          const isWhole = Object.keys(filters).length === 0;
          const total = isWhole ? own.length : items.length;
          expect([given, answer.total]).toEqual([given, total]);
          expect([limit, after, before]).toHaveLength(3);
        }
      },
    );

    test.each(names)(
      '%s finds, changes and removes its lines, and lines of others are absent',
      async (caller) => {
        for (const [title, row] of Object.entries(rows)) {
          const { id, version } = row;
          const found = await api.find(caller, id);
          if (!seen[caller]?.includes(title)) {
            const refused = { error: absent(id) };
            expect(found).toEqual(refused);
            const change = { version, title: 'x' };
            const stale = { version: version + 1, title: 'x' };
            expect(await api.change(caller, id, change)).toEqual(refused);
            expect(await api.change(caller, id, stale)).toEqual(refused);
            expect(await api.empty(caller, id)).toEqual(refused);
            expect(await api.remove(caller, id)).toEqual(refused);
            expect(await api.remove(caller, id, 9)).toEqual(refused);
            continue;
          }
          const own = shown(caller, title);
          expect(found).toEqual({ item: shapeOf(own) });
          const change = { version, title: `${title}!` };
          expect(await api.change(caller, id, change)).toEqual({
            item: shapeOf({ ...own, ...change, version: version + 1 }),
          });
          const amount = hidden[caller] === 'amount' ? undefined : 0;
          expect(await api.empty(caller, id)).toEqual({
            item: shapeOf({ ...own, ...change, amount, version: version + 2 }),
          });
          expect(await api.remove(caller, id)).toEqual({ item: null });
          expect(await api.find(caller, id)).toEqual({ error: absent(id) });
        }
      },
    );

    test.each([
      ['ann a', 'ann', undefined],
      ['ann a', 'bea', noBill],
      ['ann a', 'none', noBill],
      ['ann a', 'ann b', noBill],
      ['ann a', undefined, refusal],
      ['clerk ann', 'ann', undefined],
      ['clerk ann', 'bea', refusal],
      ['clerk ann', 'none', refusal],
      ['clerk ann', 'ann b', noBill],
      ['clerk ann', undefined, refusal],
      ['staff a', 'bea', undefined],
      ['staff a', 'ann b', noBill],
      ['staff a', undefined, undefined],
    ])('%s adds a line to the bill %s', async (caller, name, error) => {
      const billId = name && bills[name].id;
      const input = { title: 'new', amount: 2, ...(name && { billId }) };
      for (const headers of [{}, { 'idempotency-key': randomUUID() }]) {
        const title = `new ${Object.keys(headers)}`;
        const json = { ...input, title };
        const created = await api.create(caller, json, headers);
        if (error) {
          expect(created).toEqual({ error });
          continue;
        }
        const item = { ...json, clerk: null, firm: 'a', version: 1 };
        expect(created).toMatchObject({
          item: { ...item, billId: billId ? `${billId}` : null },
        });
        const { id } = created.item as any;
        expect(await api.find(caller, id)).toEqual(created);
        if (Object.keys(headers).length > 0)
          expect(await api.create(caller, json, headers)).toEqual(created);
      }
      const stored = await sql(store.database, 'select title from line');
      expect(stored).toHaveLength(error ? 5 : 7);
    });

    test('a creation joins the first audience that it fits with its bill', async () => {
      const input = { title: 'other', billId: bills.bea.id };
      const { item } = await api.create('ann writes', input);
      expect(item).toMatchObject({ clerk: 'ann', amount: null });
      const own = { title: 'own', billId: bills.ann.id };
      const joined = await api.create('ann writes', own);
      expect(joined.item).toMatchObject({ clerk: null, amount: 1 });
      // It contradicts the other one, too.
      const wrong = { title: 'wrong', billId: bills.bea.id, clerk: 'cid' };
      const refused = await api.create('ann writes', wrong);
      expect(refused.error).toMatchObject({ code: 'BAD_USER_INPUT' });
    });

    test.each([
      ['clerk ann', 'bea', refusal],
      ['clerk ann', 'none', refusal],
      ['clerk ann', null, refusal],
      ['clerk ann', 'ann b', noBill],
      ['ann a', 'bea', noBill],
      ['ann a', null, refusal],
      ['ann a', 'ann', undefined],
      ['staff a', 'bea', undefined],
      ['staff a', null, undefined],
      ['staff a', 'ann b', noBill],
      ['support', 'ann b', noBill],
    ])('%s moves a line to the bill %s', async (caller, name, error) => {
      const { id, version } = rows['of ann'];
      const billId = name === null ? null : bills[name].id;
      const changed = await api.change(caller, id, { version, billId });
      if (error) {
        expect(changed).toEqual({ error });
        const { item } = await api.find('staff a', id);
        expect(item).toEqual(shapeOf(rows['of ann']));
        return;
      }
      expect(changed.item).toMatchObject({
        billId: billId === null ? null : `${billId}`,
        version: 2,
      });
      const isOfBea = name === 'bea';
      const ofBea = await api.find('bea a', id);
      const ofAnn = await api.find('ann a', id);
      expect([!ofBea.error, !ofAnn.error]).toEqual([isOfBea, name === 'ann']);
    });

    test('a line stays in one audience of its caller, whatever its bill', async () => {
      const { id, version } = rows['of ann'];
      const { bea } = bills;
      const both = { version, billId: bea.id, clerk: 'ann' };
      const change = (json: object) => api.change('ann writes', id, json);
      expect(await change(both)).toEqual({ error: refusal });
      const written = await change({ version, clerk: 'ann' });
      expect(written.item).toMatchObject({ clerk: 'ann', amount: 5 });
      const moved = await change({ version: 2, billId: bea.id });
      expect(moved.item).toMatchObject({ clerk: 'ann', amount: null });
    });

    test('rights are those of the audience that a line has when it is written', async () => {
      const { id } = rows['of ann'];
      const caller = 'ann reads';
      const { item } = await api.change('staff a', id, {
        ...{ version: 1, clerk: 'ann' },
      });
      const handOver = `update bill set login = 'bea' where id = ${bills.ann.id}`;
      for (const [deed, write] of [
        ['set title', () => api.change(caller, id, { version: 2, title: 'x' })],
        ['remove it', () => api.remove(caller, id)],
        ['remove it', () => api.remove(caller, id, 2)],
      ] as Array<[string, () => Promise<Answer>]>) {
        const { error } = await overtaken(store.database, handOver, write);
        const message = `This caller may not ${deed}.`;
        expect(error).toEqual({ code: 'FORBIDDEN', status: 403, message });
        expect(await api.find('staff a', id)).toEqual({ item });
        await sql(store.database, handOver.replace('bea', 'ann'));
      }
      const changed = await api.change(caller, id, { version: 2, title: 'x' });
      expect(changed.item).toMatchObject({ title: 'x' });
    });

    test('lines follow their bill', async () => {
      const { id, version } = bills.ann;
      const json = { version, login: 'bea' };
      await ask('staff a', `/bills/${id}`, 'PATCH', json);
      const ofBea = await api.list('bea a', {});
      expect(ofBea).toEqual({
        items: ['of ann', 'of bea'].map((title) =>
          shapeOf(shown('bea a', title)),
        ),
        total: 2,
      });
      expect(await api.list('ann a', {})).toEqual({ items: [], total: 0 });
      const { id: lineId } = rows['of ann'];
      const error = absent(lineId);
      expect(await api.find('ann a', lineId)).toEqual({ error });
      const change = { version: 1, title: 'x' };
      expect(await api.change('ann a', lineId, change)).toEqual({ error });
      expect(await api.remove('ann a', lineId)).toEqual({ error });
      expect((await api.change('bea a', lineId, change)).error).toBeUndefined();
    });

    test('a creation is answered again after its bill is of another', async () => {
      const input = { title: 'once', billId: bills.ann.id };
      const headers = { 'idempotency-key': randomUUID() };
      const first = await api.create('ann a', input, headers);
      const other = { ...input, billId: bills['ann b'].id };
      const ofOther = await api.create('ann b', other, headers);
      expect(ofOther.item).toMatchObject({ firm: 'b' });
      const { id, version } = bills.ann;
      const json = { version, login: 'bea' };
      await ask('staff a', `/bills/${id}`, 'PATCH', json);
      const again = await api.create('ann a', input, headers);
      expect((again.item as any).id).toBe((first.item as any).id);
      const fresh = { ...input, title: 'twice' };
      expect(await api.create('ann a', fresh)).toEqual({ error: noBill });
    });

    test('a creation is answered again as it was, in whatever audience it would be now', async () => {
      const input = { title: 'once', billId: bills.ann.id };
      const headers = { 'idempotency-key': randomUUID() };
      const create = () => api.create('ann writes', input, headers);
      const first = await create();
      await handOver('ann', 'bea');
      expect(await create()).toEqual(first);
      const other = { ...input, title: 'other' };
      const reused = await api.create('ann writes', other, headers);
      expect(reused.error).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    });

    test.each([
      ['changed', "update line set title = 'x', version = 2"],
      ['removed', 'delete from line'],
    ])(
      'a key of the release before is answered as at first after its line is %s',
      async (_, text) => {
        const input = { title: 'once', billId: bills.ann.id };
        const headers = { 'idempotency-key': randomUUID() };
        const create = () => api.create('ann a', input, headers);
        const first = await create();
        const { id } = first.item as any;
        const { title, billId } = input;
        const given = digestOf({ amount: 1, billId, title });
        const item = digestOf({ amount: 1, billId, firm: 'a', title });
        const names = `${namesOfLine},;${given.toString('hex')}`;
        await sql(
          store.database,
          'update idempotency_key set fingerprint = $1 where generated[1] = $2',
          [Buffer.concat([item, Buffer.from(names)]), id],
        );
        await sql(store.database, `${text} where id = ${id}`);
        expect(await create()).toEqual(first);
      },
    );

    test('the release before knows the keys of this one', async () => {
      const input = { title: 'once', billId: bills.ann.id };
      const headers = { 'idempotency-key': randomUUID() };
      const { item } = await api.create('ann a', input, headers);
      const [[text = ''] = []] = await sql<[string]>(
        store.database,
        "select encode(fingerprint, 'hex') from idempotency_key where generated[1] = $1",
        [(item as any).id],
      );
      const fingerprint = Buffer.from(text, 'hex');
      // It compares what was given, too, and takes the names from the key.
      const { title, billId } = input;
      const given = digestOf({ amount: 1, billId, title });
      expect(fingerprint.subarray(0, 32)).toEqual(given);
      expect(`${fingerprint.subarray(32)}`).toBe(namesOfLine);
    });

    test.each([false, true])(
      'a creation refuses a bill that is handed over meanwhile, and its neighbours stay (with a key: %s)',
      async (hasKey) => {
        const headers = hasKey ? { 'idempotency-key': randomUUID() } : {};
        const input = { title: 'late', billId: bills.ann.id };
        const add = (caller: string, title: string) =>
          api.create(caller, { ...input, title }, headers);
        const before = whenWriting(() => handOver('ann', 'bea'));
        const [late, mine, clerk] = await withRows(store.database, before, () =>
          Promise.all([
            add('ann a', 'late'),
            add('staff a', 'of all'),
            add('clerk ann', 'of clerk'),
          ]),
        );
        expect([late, clerk]).toEqual([{ error: noBill }, { error: refusal }]);
        const ofBea = await api.list('bea a', {});
        expect(ofBea.items).toContainEqual({
          ...(mine?.item as object),
          cost: null,
        });
        const titles = await sql(store.database, 'select title from line');
        expect(titles.flat()).not.toContain('late');
        if (!hasKey) return;
        expect(await add('ann a', 'late')).toEqual({ error: noBill });
        await handOver('ann', 'ann');
        const again = await add('ann a', 'late');
        expect(again.item).toMatchObject({ title: 'late' });
        expect(await add('ann a', 'late')).toEqual(again);
      },
    );

    test('a creation that is refused as its bill is handed over is not sent again', async () => {
      const input = { title: 'late', billId: bills.ann.id };
      const before = whenWriting(() => handOver('ann', 'bea'));
      const create = () => api.create('ann a', input);
      const sent = await statementsOf(/^insert_.*line/, store.database, () =>
        withRows(store.database, before, create),
      );
      expect(sent).toHaveLength(1);
    });

    test('a line does not move to a bill that is handed over meanwhile', async () => {
      await handOver('none', 'ann');
      const { id, version } = rows['of ann'];
      const move = (caller: string) => {
        const change = { version, billId: bills.none.id };
        return api.change(caller, id, change);
      };
      const moveWhile = (caller: string, login: string) => {
        const before = whenWriting(() => handOver('none', login));
        return withRows(store.database, before, () => move(caller));
      };
      const late = await moveWhile('clerk ann', 'bea');
      expect(late).toEqual({ error: refusal });
      const stays = await api.find('ann a', id);
      expect(stays).toEqual({ item: shapeOf(shown('ann a', 'of ann')) });
      const moved = await moveWhile('staff a', 'ann');
      expect(moved.item).toMatchObject({ billId: `${bills.none.id}` });
      const ofAnn = await api.find('clerk ann', id);
      expect(ofAnn).toEqual(moved);
    });

    test('a title that a line of another has is taken', async () => {
      const input = { title: 'of bea', billId: bills.ann.id };
      const { error } = await api.create('ann a', input);
      expect(error).toEqual({
        code: 'CONFLICT',
        status: 409,
        message: 'Another one has this firm and title.',
      });
    });
  });

  test('lists at once of several callers do not share their lines', async () => {
    const all = [...names, ...names];
    const paths = ['/lines', '/lines?bill_login=ann'];
    for (const path of paths) {
      const asked = all.filter((one) => path === '/lines' || one !== 'cid a');
      const found = await Promise.all(asked.map((one) => ask(one, path)));
      const titles = found.map(({ json }) => json.map((one: any) => one.title));
      const own = asked.map((one) =>
        (seen[one] ?? []).filter(
          (title) => path === '/lines' || /of ann/.test(title),
        ),
      );
      expect(titles).toEqual(own);
    }
  });

  test('pages are walked by their links', async () => {
    for (const title of ['p', 'q', 'r'])
      await ask('ann a', '/lines', 'POST', { title, billId: bills.ann.id });
    for (const sort of ['id', 'amount', 'amount_desc']) {
      const titles: string[] = [];
      let next: string | undefined = `/lines?limit=1&sort=${sort}`;
      while (next && titles.length < 9) {
        const { json, headers } = await ask('ann a', next);
        titles.push(...json.map((one: any) => one.title));
        const found = /<[^>]*\/v1([^>]*)>; rel="next"/.exec(`${headers.link}`);
        next = found?.[1];
      }
      expect(titles.toSorted()).toEqual(['of ann', 'p', 'q', 'r']);
    }
  });

  test('ids of several ascend after one of their bills is handed over meanwhile', async () => {
    const { ann, bea } = bills;
    const inputs = [ann, bea, ann, bea].map(({ id: billId }, at) => {
      return { title: `${at}`, billId };
    });
    for (const login of ['cid', 'ann']) {
      const before = whenWriting(() => handOver('ann', login));
      const headers =
        login === 'cid' ? {} : { 'idempotency-key': randomUUID() };
      const { json } = await withRows(store.database, before, () =>
        ask('staff a', '/lines/batch', 'POST', { inputs }, headers),
      );
      const ids = json.map(({ item }: any) => item.id);
      expect(ids).toEqual(ids.toSorted((a: number, b: number) => a - b));
      await sql(store.database, 'delete from line where title = any($1)', [
        inputs.map(({ title }) => title),
      ]);
    }
  });

  const addingLate = (headers: object) =>
    ask(
      ...(['staff a', '/lines', 'POST'] as const),
      { title: 'late', billId: bills.ann.id },
      headers,
    );
  const moving = (headers: object) =>
    ask(
      ...(['staff a', `/lines/${rows['of none'].id}`, 'PATCH'] as const),
      { version: 1, billId: bills.ann.id },
      headers,
    );
  test.each([
    ['created', addingLate],
    ['changed', moving],
  ])(
    'a dry run, which is a transaction, is repeated when the bill of a line that is %s is handed over',
    async (_, send) => {
      let count = 0;
      const note = (send: Database['rows']): Database['rows'] => {
        const before = whenWriting(() => handOver('ann', 'bea'));
        const write = before(send);
        return async (statement, values) => {
          if (/^(insert|change)_.*line/.test(statement.name)) count += 1;
          return write(statement, values) as never;
        };
      };
      const { status } = await withRows(store.database, note, () =>
        send({ prefer: 'tx=rollback' }),
      );
      expect([status < 300, count]).toEqual([true, 2]);
    },
  );

  describe('beside a trigger of a module', () => {
    const spoil = `
      create or replace function spoil() returns trigger language plpgsql as $$ begin
        if new.title = 'zero' then perform 1 / (new.version - new.version); end if;
        if new.title = 'none' then return null; end if;
        if new.title = 'moved' then new.bill_id := null; end if;
        return new; end $$`;
    beforeEach(async () => {
      await sql(store.database, spoil);
      await sql(
        store.database,
        'create trigger aaa_spoil before insert or update on line for each row execute function spoil()',
      );
    });
    afterEach(() => sql(store.database, 'drop function spoil cascade'));

    test.each(['zero', 'none'])(
      'a line that it refuses is written once (%s)',
      async (title) => {
        let count = 0;
        const note =
          (send: Database['rows']): Database['rows'] =>
          (statement, values) => {
            if (statement.isWrite) count += 1;
            return send(statement, values);
          };
        const billId = bills.ann.id;
        const { json } = await withRows(store.database, note, () =>
          ask('ann a', '/lines', 'POST', { title, billId }),
        );
        const error = { code: 'BAD_USER_INPUT', status: 400 };
        expect([json, count]).toMatchObject([error, 1]);
      },
    );

    test('a line whose relation it changes is stored', async () => {
      const billId = bills.ann.id;
      const input = { title: 'moved', billId };
      for (const headers of [{}, { 'idempotency-key': randomUUID() }]) {
        const path = '/lines';
        const added = await ask('staff a', path, 'POST', input, headers);
        const at = `/lines/${added.json.id}`;
        expect((await ask('staff a', at)).json.billId).toBeNull();
        const change = { version: 1, billId };
        const moved = await ask('staff a', at, 'PATCH', change);
        expect(moved.json).toMatchObject({ version: 2, billId: null });
        await ask('staff a', at, 'DELETE');
      }
    });
  });

  test('several are added, each by itself', async () => {
    const inputs = [
      { title: 'one', billId: bills.ann.id },
      { title: 'two', billId: bills.bea.id },
      { title: 'three' },
    ];
    const { json } = await ask('clerk ann', '/lines/batch', 'POST', { inputs });
    expect(json).toMatchObject([
      { item: { title: 'one', billId: bills.ann.id } },
      { error: refusal },
      { error: refusal },
    ]);
  });

  test('relations, references and tools show the own lines only', async () => {
    for (const caller of names.filter((one) => one !== 'cid a')) {
      const text =
        '{ lines { title bill { id login } } bills { lines { title } } }';
      const { data } = await query(caller, text);
      const own = seen[caller] ?? [];
      expect(data.lines.map(({ title }: any) => title)).toEqual(own);
      const nested = data.bills.flatMap(({ lines }: any) => lines);
      expect(nested.map(({ title }: any) => title)).toEqual(
        own.filter((title) => title !== 'loose'),
      );
    }
    for (const caller of names)
      for (const [title, { id }] of Object.entries(rows)) {
        const isOwn = seen[caller]?.includes(title);
        const { data } = await query(
          caller,
          `{ _entities(representations: [{ __typename: "Line", id: "${id}" }]) { ... on Line { title } } }`,
        );
        expect(data._entities).toEqual([isOwn ? { title } : null]);
        const target = { origin: store.origin, key: keyOf(caller) };
        const given = { lineId: `${id}` };
        const { isError } = await callTool(target, 'get_line', given);
        expect(isError === true).toBe(!isOwn);
      }
  });

  test('own SQL has the own lines', async () => {
    for (const caller of ['ann a', 'bea a', 'ann b']) {
      const { json } = await ask(caller, '/own-lines');
      const own = (seen[caller] ?? []).map((title) => shown(caller, title));
      expect(json).toEqual(own);
    }
  });

  test('a line has no member of its bill', async () => {
    const { json } = await ask('staff a', `/lines/${rows['of ann'].id}`);
    const all = [...members.split(' ')].toSorted();
    expect(Object.keys(json).toSorted()).toEqual(all);
    const list = await ask('staff a', '/lines');
    expect(Object.keys(list.json[0]).toSorted()).toEqual(all);
    const change = { version: 1, bill_login: 'bea' };
    const path = `/lines/${rows['of ann'].id}`;
    const changed = await ask('staff a', path, 'PATCH', change);
    expect(changed.status).toBe(400);
    const given = { title: 'x', billId: bills.bea.id, bill_login: 'ann' };
    const { json: made } = await ask('staff a', '/lines', 'POST', given);
    expect((await ask('ann a', `/lines/${made.id}`)).status).toBe(404);
  });

  test('live lists have the own lines, from any place, and go on after their bill is of another', async () => {
    const follow = (caller: string, path = '', headers = {}) =>
      openStream(store, {
        method: 'GET',
        path: `/v1/lines${path}`,
        key: keyOf(caller),
        headers: { accept: 'text/event-stream', ...headers },
      });
    for (const caller of names) {
      const own = (seen[caller] ?? []).map((title) => rows[title].id);
      const streams = [
        await follow(caller, '?after=0'),
        await follow(caller, '', { 'last-event-id': '0' }),
      ];
      for (const stream of streams) {
        const events = await stream.until(own.length);
        expect(events.map(({ id }) => Number(id))).toEqual(own.map(Number));
        stream.close();
      }
      const fresh = await follow(caller);
      await fresh.until(0);
      while (fresh.lastEventId === undefined)
        await new Promise((next) => setTimeout(next, 10));
      expect(fresh.lastEventId).toBe(`${own.at(-1)}`);
      fresh.close();
    }
    const [ofAnn, ofBea] = [await follow('ann a'), await follow('bea a')];
    const { id, version } = bills.ann;
    await ask('staff a', `/bills/${id}`, 'PATCH', { version, login: 'bea' });
    // A line from before is no new one.
    const add = (title: string, billId: unknown) =>
      ask('staff a', '/lines', 'POST', { title, billId });
    await add('first', id);
    await ask('staff a', `/bills/${bills.none.id}`, 'PATCH', {
      version: 1,
      login: 'ann',
    });
    await add('second', bills.none.id);
    const titlesOf = async (stream: typeof ofAnn, count: number) =>
      (await stream.until(count)).map(({ data }) => data.title);
    expect(await titlesOf(ofBea, 1)).toEqual(['first']);
    // Beyond its position, as after a change of the line itself.
    expect(await titlesOf(ofAnn, 2)).toEqual(['of none', 'second']);
    expect(ofBea.events[0]?.data).not.toHaveProperty('cost');
    ofAnn.close();
    ofBea.close();
    const resumed = await follow('ann a', '', {
      'last-event-id': `${rows['of ann'].id}`,
    });
    const later = await resumed.until(2);
    expect(later.map(({ data }) => data.title)).toEqual(['of none', 'second']);
    resumed.close();
  });

  test('subscriptions have the own lines', async () => {
    const open = (caller: string) =>
      openStream(store, {
        key: keyOf(caller),
        body: { query: 'subscription { lineAdded { title cost } }' },
      });
    const [ofAnn, ofBea] = [await open('ann a'), await open('bea a')];
    const add = (title: string, billId: unknown) =>
      ask('staff a', '/lines', 'POST', { title, billId, cost: 'x' });
    await add('for ann', bills.ann.id);
    await add('for bea', bills.bea.id);
    const dataOf = async (stream: typeof ofAnn) =>
      (await stream.until(1)).map(({ data }) => data.data.lineAdded);
    expect(await dataOf(ofAnn)).toEqual([{ title: 'for ann', cost: null }]);
    expect(await dataOf(ofBea)).toEqual([{ title: 'for bea', cost: null }]);
    ofAnn.close();
    ofBea.close();
  });

  test('a rule tells nothing to a caller who writes other rows only', async () => {
    const { id } = rows['of bea'];
    const text = `update line set cost = 'secret' where id = ${id}`;
    await sql(store.database, text);
    const path = `/lines/${id}`;
    expect((await ask('cid reads', path)).json).toMatchObject({ id });
    const { json } = await ask('cid reads', `${path}/empty`, 'POST');
    expect(json).toMatchObject({ message: 'This caller may not empty it.' });
  });

  test('an import adds lines to bills', async () => {
    const collection = openModules(store.modules, store.database, {})
      .flatMap(({ collections = [] }) => collections)
      .find(({ name }) => name === 'lines') as Collection;
    const input = join(await newFolder(), 'lines.ndjson');
    const lines = [
      { title: 'no firm', billId: Number(bills.bea.id) },
      { title: 'imported', billId: Number(bills.bea.id), firm: 'a' },
      { title: 'without', firm: 'a' },
    ];
    writeFileSync(input, lines.map((one) => JSON.stringify(one)).join('\n'));
    const refused: string[] = [];
    const { result } = await importFile(
      {
        collection,
        maxLength: 10_000,
        signal: new AbortController().signal,
        progress: () => undefined,
        refused: (at, reason) => refused.push(`${at}: ${reason}`),
      },
      { input },
    );
    process.exitCode = undefined;
    expect(result).toEqual({ added: 2, same: 0, refused: 1 });
    expect(refused).toEqual(['1: firm must be the name of a tenant.']);
    const { json } = await ask('bea a', '/lines');
    expect(json.map((one: any) => one.title)).toEqual(['of bea', 'imported']);
  });

  test('the start refuses what cannot be, and names the indexes', async () => {
    const open = (options: object) => () =>
      new Records(store.database, LineEntity, {
        ...line.lists,
        ...options,
      } as never);
    const traced = {
      trace: true,
      audiences: [{ scope: 'buyers', rows: { bill_login: 'subject' } }],
    };
    const all = namingAllFaults(async () => open(traced)());
    await expect(all).rejects.toThrow(
      'lines has a trace, and rows by bill_login: a trace knows two of these, of the row itself.',
    );
    const rows = { bill_login: 'subject', title: 'subject' } as const;
    const audiences = [{ scope: 'buyers', rows }];
    expect(open({ audiences })).toThrow(
      "the entity lacks { properties: ['bill_login', 'title', 'id'] }, { properties: ['bill_login', 'title', 'billId', 'id'] }",
    );
    const ofTenant = [{ scope: 'buyers', rows: { bill_login: 'tenant' } }];
    const notOwn =
      'The tenant or owner of line is a member of its own, not bill_login.';
    expect(open({ audiences: ofTenant })).toThrow(notOwn);
    const owner = { owner: 'bill_login', audiences: undefined };
    expect(open(owner)).toThrow(notOwn);
    const hides = [{ scope: 'bills', rows: {}, hides: ['bill_login'] }];
    expect(open({ audiences: hides })).toThrow(
      'The audience bills cannot hide or set bill_login.',
    );
  });
});
