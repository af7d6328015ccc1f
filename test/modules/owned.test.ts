import { resource } from '#engine/api/resources/resource.js';
import { Call } from '#engine/call.js';
import { LiveList } from '#engine/records/live-list.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { openStream } from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import { beforeAll, describe, expect, test } from '../support/jest.ts';
import { eventually } from '../support/process.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { storeForAll } from '../support/store.ts';
import { callersForAll } from './diaries/callers.ts';
import { diariesOn } from './diaries/diaries.module.ts';
import {
  type Diary,
  DiaryEntity,
  diary,
  type NewDiary,
  type NewRemark,
  type Remark,
  RemarkEntity,
  remark,
} from './diaries/diary.ts';
import {
  EntityRecords,
  type Repositories,
} from './repositories/entity-records.ts';

/**
 * Rows that belong to callers: every way to rows of another caller, with the
 * keys of two and one with `diaries:all`.
 */

// Citus allows a foreign key between distributed tables only when both are
// distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

const text = textSchema({ description: 'x' });

const collections: Array<[string, Repositories]> = [
  ['Records', Records],
  ['MikroORM', EntityRecords],
];
describeHere.each(collections)('diaries on %s', (_name, Collection) => {
  const store = storeForAll({}, undefined, { more: [diariesOn(Collection)] });

  const callers = callersForAll(store);
  const { ask, add, list, query } = callers;
  const idsOf = (items: Array<{ id: unknown }>) =>
    items.map(({ id }) => `${id}`);

  let ada = '';
  let bob = '';
  let all = '';
  let owners: string[] = [];
  let ofAda: any;
  let ofBob: any;
  let adasRemark: any;
  let bobsRemark: any;

  beforeAll(() => {
    ({ ada, bob, all, owners } = callers);
    ({ ofAda, ofBob, adasRemark, bobsRemark } = callers);
  });

  test('a creation belongs to its caller, whatever the input says, in both APIs', async () => {
    expect([ofAda, ofBob].map(({ createdBy }) => createdBy)).toEqual(
      owners.slice(0, 2),
    );
    const stolen = { title: 'x', mood: 'x', createdBy: owners[0] };
    const created = await add(bob, '/diaries', stolen);
    expect(created.createdBy).toBe(owners[1]);
    await ask(bob, 'DELETE', `/diaries/${created.id}`);
    const { errors } = await query(
      bob,
      'mutation { createDiary(input: { title: "y", mood: "y", createdBy: "z" }) { id } }',
    );
    expect(errors?.[0]?.extensions.code).toBe('GRAPHQL_VALIDATION_FAILED');
  });

  test('lists, filters, orders, cursors and totals have the own rows only; the scope all has those of all', async () => {
    const seen: Array<[string, unknown[]]> = [
      [ada, [ofAda]],
      [bob, [ofBob]],
      [all, [ofAda, ofBob]],
    ];
    for (const [key, expected] of seen) {
      const paths = [
        ...['', '?mood=fine', '?after=0', '?limit=100', '?before=999999999'],
        ...['?mood_in=fine&mood_in=x', '?pages_gte=1', '?pages_lt=9&mood=fine'],
        '?sort=pages&mood_in=fine',
      ];
      for (const path of paths)
        expect(await list(key, `/diaries${path}`)).toEqual(expected);
      expect(await list(key, '/diaries?sort=id_desc')).toEqual(
        expected.toReversed(),
      );
      const { headers } = await ask(key, 'GET', '/diaries', undefined, {
        prefer: 'count=exact',
      });
      expect(headers['x-total-count']).toBe(`${expected.length}`);
      const { data } = await query(
        key,
        '{ diaries { id } diariesConnection { totalCount edges { cursor } pageInfo { hasNextPage } } }',
      );
      expect(idsOf(data.diaries)).toEqual(idsOf(expected as any[]));
      expect(data.diariesConnection.totalCount).toBe(expected.length);
      expect(data.diariesConnection.edges).toHaveLength(expected.length);
    }
    // Neither a value nor a previous page tells of others.
    const backwards = await query(
      ada,
      '{ diariesConnection(last: 1) { edges { node { id } } pageInfo { hasPreviousPage hasNextPage } } }',
    );
    expect(backwards.data.diariesConnection).toEqual({
      edges: [{ node: { id: `${ofAda.id}` } }],
      pageInfo: { hasPreviousPage: false, hasNextPage: false },
    });
    const beside = await ask(bob, 'GET', `/diaries?after=${ofAda.id}`);
    expect(`${beside.headers.link}`).not.toContain('rel="next"');
    // A parameter with the member of the owner is unknown.
    expect(await list(bob, `/diaries?createdBy=${owners[0]}`)).toEqual([ofBob]);
    // A page ends where the own rows end: no next page tells of others.
    expect(
      (await ask(ada, 'GET', '/diaries?limit=1')).headers.link,
    ).toBeUndefined();
    // The cursor of another is a place, and no more.
    expect(await list(ada, `/diaries?after=${ofBob.id}`)).toEqual([]);
    expect(await list(bob, `/diaries?after=${ofAda.id}`)).toEqual([ofBob]);
  });

  test('identical lists, finds and totals of several callers share batches, not rows', async () => {
    // Without shared statements, so many totals would be late.
    const length = Collection === Records ? 60 : 6;
    const keys = Array.from(
      { length },
      (_, at) => [ada, bob, all][at % 3] as string,
    );
    const expected = [[ofAda], [ofBob], [ofAda, ofBob]];
    const [lists, finds, counts] = await Promise.all([
      Promise.all(keys.map((key) => list(key, '/diaries?limit=5'))),
      Promise.all(keys.map((key) => ask(key, 'GET', `/diaries/${ofAda.id}`))),
      Promise.all(
        keys.map((key) =>
          ask(key, 'GET', '/diaries?limit=1', undefined, {
            prefer: 'count=exact',
          }),
        ),
      ),
    ]);
    for (const at of keys.keys()) {
      expect(lists[at]).toEqual(expected[at % 3]);
      expect(finds[at]?.status).toBe(at % 3 === 1 ? 404 : 200);
      expect(counts[at]?.headers['x-total-count']).toBe(
        `${expected[at % 3]?.length}`,
      );
    }
  });

  const missing = (noun: string, id: unknown) => ({
    code: 'NOT_FOUND',
    status: 404,
    message: `There is no ${noun} with the id ${id}.`,
  });

  test('the row of another is absent: find, change, removal, with and without its version', async () => {
    const path = `/diaries/${ofAda.id}`;
    const absent = missing('diary', ofAda.id);
    expect((await ask(bob, 'GET', path)).json).toEqual(absent);
    for (const version of [1, 2])
      expect(
        (await ask(bob, 'PATCH', path, { version, mood: 'bad' })).json,
      ).toEqual(absent);
    for (const version of ['', '?version=1', '?version=2'])
      expect((await ask(bob, 'DELETE', path + version)).json).toEqual(absent);
    const { etag } = (await ask(ada, 'GET', path)).headers;
    expect(
      (await ask(bob, 'GET', path, undefined, { 'if-none-match': `${etag}` }))
        .status,
    ).toBe(404);
    expect(
      (await ask(bob, 'GET', path, undefined, { 'if-none-match': '*' })).status,
    ).toBe(404);
    expect(
      (await query(bob, `{ diary(id: "${ofAda.id}") { id } }`)).data,
    ).toEqual({ diary: null });
    for (const mutation of [
      `changeDiary(id: "${ofAda.id}", change: { version: 1, mood: "bad" }) { id }`,
      `removeDiary(id: "${ofAda.id}")`,
    ]) {
      const { errors } = await query(bob, `mutation { ${mutation} }`);
      expect(errors).toMatchObject([
        { message: absent.message, extensions: { code: 'NOT_FOUND' } },
      ]);
    }
    expect((await ask(ada, 'GET', path)).json).toEqual(ofAda);
  });

  test('no change gives a row away', async () => {
    const path = `/diaries/${ofBob.id}`;
    const { json } = await ask(bob, 'PATCH', path, {
      version: 1,
      createdBy: owners[0],
    });
    expect(json).toMatchObject({ code: 'BAD_USER_INPUT' });
    const { headers } = await ask(ada, 'GET', '/diaries');
    const tag = { 'if-none-match': `${headers.etag}` };
    expect((await ask(ada, 'GET', '/diaries', undefined, tag)).status).toBe(
      304,
    );
    expect((await ask(bob, 'GET', '/diaries', undefined, tag)).status).toBe(
      200,
    );
  });

  test('nested fields both ways', async () => {
    const text =
      '{ diaries(limit: 3) { id remarks(limit: 3) { id diary { id remarks(limit: 3) { id } } } } }';
    for (const [key, expected] of [
      [ada, [[ofAda, adasRemark]]],
      [bob, [[ofBob, bobsRemark]]],
      [
        all,
        [
          [ofAda, adasRemark],
          [ofBob, bobsRemark],
        ],
      ],
    ] as Array<[string, any[][]]>) {
      const { data, errors } = await query(key, text);
      expect(errors).toBeUndefined();
      expect(data.diaries).toEqual(
        expected.map(([diary, remark]) => {
          const remarks = [{ id: `${remark.id}` }];
          const inner = { id: `${diary.id}`, remarks };
          return {
            id: `${diary.id}`,
            remarks: [{ ...remarks[0], diary: inner }],
          };
        }),
      );
    }
  });

  test('a remark in the diary of another: its diary is null, and the owner does not see it', async () => {
    // Only the scope all can make one.
    const alien = await add(all, '/remarks', {
      diaryId: ofAda.id,
      text: 'alien',
    });
    expect(alien.createdBy).toBe(owners[2]);
    const { data } = await query(ada, '{ diaries { remarks { text } } }');
    expect(data.diaries).toEqual([{ remarks: [{ text: 'a' }] }]);
    await ask(all, 'DELETE', `/remarks/${alien.id}`);
  });

  test('a relation to the row of another is refused as if it were absent', async () => {
    const refusal = {
      code: 'BAD_USER_INPUT',
      status: 400,
      message: 'diaryId must be the id of one that exists.',
    };
    for (const diaryId of [ofAda.id, 999_999_999]) {
      const input = { diaryId, text: 'x' };
      expect((await ask(bob, 'POST', '/remarks', input)).json).toEqual(refusal);
      expect(
        (
          await ask(bob, 'POST', '/remarks', input, {
            'idempotency-key': `x${diaryId}`,
          })
        ).json,
      ).toEqual(refusal);
      const path = `/remarks/${bobsRemark.id}`;
      expect(
        (await ask(bob, 'PATCH', path, { version: 1, diaryId })).json,
      ).toEqual(refusal);
      const { errors } = await query(
        bob,
        `mutation { createRemark(input: { diaryId: "${diaryId}", text: "x" }) { id } }`,
      );
      expect(errors?.[0]?.message).toBe(refusal.message);
    }
  });

  test('a unique key that begins with the owner tells nothing of others', async () => {
    const twice = await ask(bob, 'POST', '/diaries', {
      title: 'Secret',
      mood: 'x',
    });
    expect(twice.json).toMatchObject({
      code: 'CONFLICT',
      message: 'Another one has this createdBy and title.',
    });
    expect(ofBob.title).toBe(ofAda.title);
  });

  test('an idempotency key of another repeats nothing', async () => {
    const once = { 'idempotency-key': 'the-same-name' };
    const input = { title: 'Once', mood: 'new' };
    const [first, other, again] = [
      await ask(ada, 'POST', '/diaries', input, once),
      await ask(bob, 'POST', '/diaries', input, once),
      await ask(ada, 'POST', '/diaries', input, once),
    ];
    expect(other.headers['idempotent-replayed']).toBeUndefined();
    expect([other.json.createdBy, other.json.id === first.json.id]).toEqual([
      owners[1],
      false,
    ]);
    expect(again.json).toEqual(first.json);
    expect(again.headers['idempotent-replayed']).toBe('true');
    await ask(ada, 'DELETE', `/diaries/${first.json.id}`);
    await ask(bob, 'DELETE', `/diaries/${other.json.id}`);
  });

  describe('live lists', () => {
    const follow = (key: string, after: unknown, headers = {}) =>
      openStream(store, {
        method: 'GET',
        path: `/v1/diaries?after=${after}`,
        key,
        headers: { accept: 'text/event-stream', ...headers },
      });
    const subscribe = (key: string, fields: string, after: unknown) =>
      openStream(store, {
        body: {
          query: `subscription { diaryAdded(after: "${after}") { ${fields} } }`,
        },
        key,
        headers: { accept: 'text/event-stream' },
      });

    test('have the own rows only, from any place, also that of another, and with nested fields', async () => {
      const before = ofAda.id - 1;
      const streams = await Promise.all([
        ...[ada, bob, all].map((key) => follow(key, before)),
        ...[ada, bob, all].map((key) =>
          follow(key, 0, { 'last-event-id': `${before}` }),
        ),
        ...[ada, bob, all].map((key) => subscribe(key, 'id', before)),
        ...[ada, bob, all].map((key) =>
          subscribe(key, 'id remarks { id }', before),
        ),
      ]);
      const added = await add(ada, '/diaries', { title: 'Live', mood: 'new' });
      const later = await add(bob, '/diaries', { title: 'Live', mood: 'new' });
      const expected = [
        [ofAda.id, added.id],
        [ofBob.id, later.id],
        [ofAda.id, ofBob.id, added.id, later.id],
      ].map((ids) => ids.map(String));
      for (const [at, stream] of streams.entries()) {
        const wanted = expected[at % 3] as string[];
        const events = await stream.until(wanted.length);
        expect(events.map(({ id }) => id)).toEqual(wanted);
        stream.close();
      }
      await ask(ada, 'DELETE', `/diaries/${added.id}`);
      await ask(bob, 'DELETE', `/diaries/${later.id}`);
    });

    test('begin at the last own row, and do not tell how many others have', async () => {
      const added = await add(ada, '/diaries', { title: 'Last', mood: 'new' });
      const path = '/v1/diaries?mood=none';
      const body = { query: 'subscription { diaryAdded { id } }' };
      const ends = [
        [ada, added.id],
        [bob, ofBob.id],
        [all, added.id],
      ] as const;
      for (const [key, id] of ends) {
        for (const request of [{ method: 'GET', path }, { body }]) {
          const stream = await openStream(store, { ...request, key });
          await eventually(async () => stream.text !== '');
          expect(stream.text).toBe(`id: ${id}\n\n`);
          stream.close();
        }
      }
      await ask(ada, 'DELETE', `/diaries/${added.id}`);
    });

    test('that are resumed at the id of a row of another, or before all, have the own rows only', async () => {
      const added = await add(ada, '/diaries', { title: 'Again', mood: 'new' });
      const own = await add(bob, '/diaries', { title: 'Again', mood: 'new' });
      for (const [place, wanted] of [
        [ofAda.id, [ofBob.id, own.id]],
        [added.id, [own.id]],
        ['-9223372036854775808', [ofBob.id, own.id]],
      ] as const) {
        const stream = await follow(bob, 0, { 'last-event-id': `${place}` });
        const events = await stream.until(wanted.length);
        expect(events.map(({ id }) => id)).toEqual(wanted.map(String));
        stream.close();
      }
      await ask(ada, 'DELETE', `/diaries/${added.id}`);
      await ask(bob, 'DELETE', `/diaries/${own.id}`);
    });
  });

  test('the scope all changes and removes rows of others, which stay theirs', async () => {
    const made = await add(ada, '/diaries', { title: 'Kept', mood: 'new' });
    const path = `/diaries/${made.id}`;
    const { json } = await ask(all, 'PATCH', path, { version: 1, mood: 'old' });
    expect(json).toMatchObject({ mood: 'old', createdBy: owners[0] });
    expect((await ask(all, 'DELETE', path)).status).toBe(204);
  });

  test('the configured scopes of other modules show nothing', async () => {
    const { key } = await store.keys.issue({
      name: 'x',
      scope: 'diaries:read pets:all',
    });
    expect(await list(key, '/diaries')).toEqual([]);
    const { key: admin } = await store.keys.issue({
      name: 'x',
      scope: 'read all',
    });
    expect(await list(admin, '/diaries')).toEqual([ofAda, ofBob]);
    const { errors } = await graphqlText(
      store,
      { query: '{ diaries { id } }' },
      key,
    );
    expect(errors).toBeUndefined();
  });

  test('a transaction of one sees, changes and refers to no row of another, and its key repeats nothing for others', async () => {
    const { database } = store;
    const diaries = new Records<Diary, NewDiary>(
      database,
      DiaryEntity,
      diary.lists,
    );
    const remarks = new Records<Remark, NewRemark>(
      database,
      RemarkEntity,
      remark.lists,
    );
    const callOf = (at: number, key?: string) => {
      const id = Number(owners[at]?.slice('key:'.length));
      const caller = { id, name: 'x', scopes: ['write'] };
      const claim = key && {
        keyId: id,
        operation: 'addDiary',
        hash: Buffer.from(key),
      };
      return Object.assign(new Call(), { caller, claim });
    };
    const creates = [DiaryEntity, RemarkEntity];
    const ofOther = callOf(1);
    const seen = await database.transaction(
      ofOther,
      { creates, input: {} },
      async () => {
        const { items } = await diaries.list({ limit: 5 } as never, ofOther);
        const change = { version: 1, mood: 'bad' } as never;
        return [
          idsOf([...items]),
          await diaries.find(ofAda.id, ofOther),
          await diaries.change(ofAda.id, change, ofOther),
          await diaries.remove(ofAda.id, {} as never, ofOther),
          (await diaries.count({}, ofOther)).count,
        ];
      },
    );
    expect(seen).toEqual([[`${ofBob.id}`], null, null, null, 1]);
    const refused = database.transaction(
      ofOther,
      { creates, input: {} },
      async () => {
        const own = { title: 'Undone', mood: 'x', pages: 1 } as NewDiary;
        await diaries.create(own, ofOther);
        const input = { diaryId: ofAda.id, text: 'x' } as NewRemark;
        return remarks.create(input, ofOther);
      },
    );
    await expect(refused).rejects.toThrow(
      'diaryId must be the id of one that exists.',
    );
    expect(await list(bob, '/diaries')).toEqual([ofBob]);
    const add = (at: number) => {
      const call = callOf(at, 'the same');
      const input = { title: 'Both', mood: 'x', pages: 1 };
      return database.transaction(call, { creates, input }, () =>
        diaries.create(input as never, call),
      );
    };
    const made = [await add(0), await add(1), await add(0)];
    expect(made.map(({ createdBy }) => createdBy)).toEqual([
      owners[0],
      owners[1],
      owners[0],
    ]);
    expect([made[2]?.id, made[1]?.id === made[0]?.id]).toEqual([
      made[0]?.id,
      false,
    ]);
    await ask(ada, 'DELETE', `/diaries/${made[0]?.id}`);
    await ask(bob, 'DELETE', `/diaries/${made[1]?.id}`);
  });

  test('a module that forgets the call shows nothing', async () => {
    const records = new Collection<Diary, NewDiary>(
      store.database,
      DiaryEntity,
      diary.lists,
    );
    const fault = 'These rows belong to callers: pass the call';
    const query = { limit: 5 } as never;
    await expect(records.list(query)).rejects.toThrow(fault);
    await expect(records.count({})).rejects.toThrow(fault);
    const [{ id }] = await list(all, '/diaries');
    await expect(records.find(id)).rejects.toThrow(fault);
    await expect(records.remove(id, {} as never)).rejects.toThrow(fault);
    await expect(records.create({} as never)).rejects.toThrow(fault);
    const change = { version: 1, mood: 'x' } as never;
    await expect(records.change(id, change)).rejects.toThrow(fault);
    expect(() => new LiveList(records).subscribe({} as never)).toThrow(fault);
  });

  test('a combination of filters that is not declared is refused without a word of the owner', async () => {
    const records = new Collection<Diary, NewDiary>(
      store.database,
      DiaryEntity,
      {
        filters: ['mood', 'pages'],
        combinations: [['mood'], ['pages']],
        owner: 'createdBy',
      },
    );
    const call = new Call();
    call.caller = { id: 7, name: 'x', scopes: ['read'] };
    const query = { mood: 'fine', limit: 5 } as never;
    expect((await records.list(query, call)).items).toEqual([]);
    const both = { mood: 'fine', pages: 1, limit: 5 } as never;
    await expect(records.list(both, call)).rejects.toThrow(
      'A list cannot be filtered by mood with pages: only by mood, or by pages.',
    );
  });

  test('the start names the indexes that begin with the owner', () => {
    const open = () =>
      new Collection<Diary, NewDiary>(store.database, DiaryEntity, {
        filters: ['title'],
        owner: 'createdBy',
      });
    expect(open).toThrow("{ properties: ['title', 'id'] }");
    const owned = () =>
      new Collection<Remark, NewRemark>(store.database, RemarkEntity, {
        filters: ['diaryId'],
        orders: ['version'],
        owner: 'createdBy',
      });
    expect(owned).toThrow(
      "{ properties: ['createdBy', 'diaryId', 'version', 'id'] }",
    );
  });
});

test('no change names the owner or the tenant, which none sets', () => {
  const members = { title: text, writer: text };
  const described = { name: 'Note', description: 'A note.', members };
  const places = { path: '/notes', operations: [] } as const;
  const owner = { ...described, ...places, owner: 'writer' } as const;
  const audiences = [{ scope: 'notes', rows: { writer: 'tenant' } }] as const;
  for (const one of [
    resource(owner),
    resource({ ...described, ...places, audiences }),
  ]) {
    const { properties } = one.schemas.change;
    expect(Object.keys(properties)).toEqual(['version', 'title']);
  }
});
