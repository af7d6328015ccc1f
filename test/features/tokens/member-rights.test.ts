import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { operation } from '#engine/api/resources/operation.js';
import { resource } from '#engine/api/resources/resource.js';
import { Call } from '#engine/call.js';
import { Records } from '#engine/records/records.js';
import { Ownership } from '#engine/records/rows/ownership.js';
import { select } from '#engine/records/select.js';
import { textSchema } from '#engine/validation/schemas.js';
import {
  EntityRecords,
  type Repositories,
} from '../../modules/repositories/entity-records.ts';
import {
  type Card,
  CardEntity,
  card,
  type NewCard,
} from '../../modules/wards/card.ts';
import { wardsOn } from '../../modules/wards/wards.module.ts';
import { overtaken } from '../../support/database-access.ts';
import { openStream } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { startStore, storeForAll } from '../../support/store.ts';
import { callTool } from '../assistants/mcp.ts';
import { providerForAll } from './provider.ts';

/** Which members callers of several audiences see and set, by row. */

const describeHere = citusLayout ? describe.skip : describe;

interface Caller {
  sub: string;
  org: string;
  scope: string;
}

const callers: Record<string, Caller> = {
  staff: { sub: 'sam', org: 'a', scope: 'staff' },
  ann: { sub: 'ann', org: 'a', scope: 'guest' },
  hal: { sub: 'hal', org: 'a', scope: 'helper' },
  // A guest, who helps others and herself.
  eve: { sub: 'eve', org: 'a', scope: 'guest helper' },
  'staff b': { sub: 'sam', org: 'b', scope: 'staff' },
  'ann b': { sub: 'ann', org: 'b', scope: 'guest' },
  support: { sub: 'sue', org: 'b', scope: 'staff support' },
};
const names = Object.keys(callers);

const ofGuests = ['code', 'risk', 'note', 'summary'];
const ofHelpers = ['code', 'note', 'summary'];

/** What the audiences of a caller hide in a row; none if it is not seen. */
function hidingIn(name: string, row: any): string[][] {
  const { sub, org, scope } = callers[name] as Caller;
  const has = (word: string) => scope.split(' ').includes(word);
  const isOfClinic = row.clinic === org;
  const audiences: Array<[boolean, string[]]> = [
    [has('staff') && isOfClinic, []],
    [has('guest') && isOfClinic && row.login === sub, ofGuests],
    [has('helper') && isOfClinic && row.helper === sub, ofHelpers],
    [has('support'), ['note', 'summary']],
  ];
  return audiences.filter(([isIn]) => isIn).map(([, hides]) => hides);
}

const members = ['code', 'risk', 'note', 'summary'];
const hiddenIn = (name: string, row: any) =>
  members.filter((one) =>
    hidingIn(name, row).every((hides) => hides.includes(one)),
  );
const isSeen = (name: string, row: any) => hidingIn(name, row).length > 0;

function shownTo(name: string, row: any) {
  const hidden = hiddenIn(name, row);
  const shown = Object.entries(row).filter(([one]) => !hidden.includes(one));
  return Object.fromEntries(shown);
}

const collections: Array<[string, Repositories]> = [
  ['Records', Records],
  ['MikroORM', EntityRecords],
];

describeHere.each(collections)('cards on %s', (_name, Collection) => {
  const provider = providerForAll();
  const env: Record<string, string> = {};
  beforeAll(() =>
    Object.assign(env, provider.env, {
      JWT_TENANT: 'org',
      MCP: 'true',
      GRAPHQL_FEDERATION: 'true',
      JWT_SCOPES:
        'staff=wards:write,guest=guests:write,helper=helpers:write,support=wards:all',
    }),
  );
  const store = storeForAll(env, undefined, { more: wardsOn(Collection) });
  const keyOf = (name: string) => provider.token({ ...callers[name] });
  const ask = async (
    caller: string,
    path: string,
    method = 'GET',
    json?: object,
    headers = {},
  ) => rest(store, `/v1${path}`, { method, json, headers, key: keyOf(caller) });
  const query = (caller: string, text: string) =>
    graphqlText(store, { query: text }, keyOf(caller));
  const refusal = (message: string) => ({
    code: 'FORBIDDEN',
    status: 403,
    message,
  });
  /** The rows as staff of each clinic see them. */
  const rows = async () => {
    const all = [
      ...(await ask('staff', '/cards?limit=100')).json,
      ...(await ask('staff b', '/cards?limit=100')).json,
    ];
    return all.sort((one, other) => Number(one.id) - Number(other.id));
  };
  const add = async (caller: string, input: object) =>
    (await ask(caller, '/cards', 'POST', input)).json;
  const fields =
    'id name phone code risk note login helper summary clinic version';
  const asGraphQL = (item: any) => ({
    ...{ code: null, risk: null, note: null, summary: null },
    ...item,
    id: `${item.id}`,
  });

  beforeAll(async () => {
    const secret = { code: 'x1', risk: 5, note: 'rude' };
    await add('staff', { name: 'Ann', login: 'ann', helper: 'hal', ...secret });
    await add('staff', {
      ...{ name: 'Eve', login: 'eve', helper: 'eve', code: 'x2', note: 'kind' },
    });
    await add('staff', { name: 'Bob', login: 'bob', helper: 'eve', risk: 5 });
    await add('staff b', { name: 'Ann', login: 'ann', ...secret });
  });

  test('each sees of each row what one of its audiences shows, on both APIs, as reference and in tools', async () => {
    for (const caller of names) {
      const all = await rows();
      const own = all.filter((row) => isSeen(caller, row));
      const expected = own.map((row) => shownTo(caller, row));
      expect((await ask(caller, '/cards')).json).toEqual(expected);
      const { data, errors } = await query(
        caller,
        `{ cards { ${fields} } cardsConnection { totalCount nodes: edges { node { ${fields} } } } }`,
      );
      expect(errors).toBeUndefined();
      expect(data.cards).toEqual(expected.map(asGraphQL));
      const { totalCount, nodes } = data.cardsConnection;
      expect(totalCount).toBe(own.length);
      expect(nodes.map(({ node }: any) => node)).toEqual(data.cards);
      for (const one of expected) {
        expect((await ask(caller, `/cards/${one.id}`)).json).toEqual(one);
        const found = await query(
          caller,
          `{ card(id: "${one.id}") { ${fields} } _entities(representations: [{ __typename: "Card", id: "${one.id}" }]) { ... on Card { ${fields} } } }`,
        );
        expect(found.data.card).toEqual(asGraphQL(one));
        expect(found.data._entities).toEqual([asGraphQL(one)]);
        const target = { origin: store.origin, key: keyOf(caller) };
        const cardId = `${one.id}`;
        const result = await callTool(target, 'get_card', { cardId });
        expect(Object.keys(result.structuredContent)).toEqual(Object.keys(one));
      }
    }
  });

  test('a hidden member filters, sorts and counts nothing; it does so in rows that show it', async () => {
    for (const path of [
      ...['risk=5', 'risk_in=5', 'risk_gte=1', 'sort=risk', 'sort=risk_desc'],
      'note=rude',
    ]) {
      const member = path.startsWith('note') ? 'note' : 'risk';
      const message = `This caller may not see ${member}.`;
      const prefer = { prefer: 'count=exact' };
      for (const headers of [{}, prefer]) {
        const { json } = await ask(
          'ann',
          `/cards?${path}`,
          'GET',
          undefined,
          headers,
        );
        expect(json).toEqual(refusal(message));
      }
      const stream = await openStream(store, {
        method: 'GET',
        path: `/v1/cards?${path}`,
        key: keyOf('ann'),
      });
      expect(stream.status).toBeGreaterThanOrEqual(400);
      stream.close();
    }
    for (const text of [
      '{ cards(risk: 5) { id } }',
      '{ cardsConnection(sort: risk) { edges { cursor } } }',
      '{ cardsConnection(note: "rude") { totalCount } }',
    ]) {
      const { errors } = await query('ann', text);
      expect(errors?.[0]?.extensions).toMatchObject({ code: 'FORBIDDEN' });
    }
    const all = await rows();
    for (const caller of ['hal', 'eve', 'support', 'staff']) {
      const shown = (member: string) =>
        all.filter((row) => !hiddenIn(caller, row).includes(member));
      const idsOf = (found: any[]) => found.map(({ id }) => id);
      const dangerous = shown('risk')
        .filter(({ risk }) => risk >= 2)
        .toSorted((one, other) => one.risk - other.risk);
      const { json, headers } = await ask(
        caller,
        '/cards?risk_gte=2',
        'GET',
        undefined,
        { prefer: 'count=exact' },
      );
      expect(idsOf(json)).toEqual(idsOf(dangerous));
      expect(headers['x-total-count']).toBe(`${dangerous.length}`);
      const sorted = await ask(caller, '/cards?sort=risk');
      expect(new Set(idsOf(sorted.json))).toEqual(
        new Set(idsOf(shown('risk'))),
      );
      expect(sorted.json).toHaveLength(shown('risk').length);
      const rude = shown('note').filter(({ note }) => note === 'rude');
      const noted = await ask(caller, '/cards?note=rude');
      const isBlind = ['hal', 'eve'].includes(caller);
      if (isBlind) expect(noted.status).toBe(403);
      else expect(idsOf(noted.json)).toEqual(idsOf(rude));
    }
  });

  test('a creation sets what an audience of its row may set, and is refused by name', async () => {
    const created = await add('ann', { name: 'Ann 2', phone: '1', risk: 1 });
    // The default is as good as absent.
    expect(created).toEqual({
      ...{ id: created.id, version: 1, clinic: 'a', login: 'ann' },
      ...{ name: 'Ann 2', phone: '1', helper: null },
    });
    const message = 'This caller may not set risk, note.';
    const wrong = { name: 'Ann 3', risk: 2, note: 'nice' };
    expect(await add('ann', wrong)).toEqual(refusal(message));
    const several = await ask('ann', '/cards/batch', 'POST', {
      inputs: [wrong, { name: 'Ann 4', login: 'ann' }],
    });
    expect(several.json).toMatchObject([
      { error: refusal(message) },
      { item: { name: 'Ann 4' } },
    ]);
    expect(several.json[1].item).not.toHaveProperty('risk');
    const { data, errors } = await query(
      'ann',
      `mutation { wrong: createCard(input: { name: "x", risk: 2, note: "y" }) { id } right: createCard(input: { name: "Ann 5" }) { ${fields} } }`,
    );
    expect(errors?.[0]).toMatchObject({ message, path: ['wrong'] });
    expect(data?.right ?? null).toBe(null);
    // A helper sets no name.
    expect(await add('hal', { name: 'x' })).toEqual(
      refusal('This caller may not set name.'),
    );
    const again = { 'idempotency-key': 'once' };
    const once = { name: 'Once' };
    const [first, second] = [
      await ask('ann', '/cards', 'POST', once, again),
      await ask('ann', '/cards', 'POST', once, again),
    ];
    expect(second.json).toEqual(first.json);
    expect(first.json).not.toHaveProperty('note');
  });

  test('a change sets what one of the audiences of the row may set', async () => {
    const found = async (name: string) =>
      (await rows()).find((row) => row.name === name && row.clinic === 'a');
    const tried: Array<[string, string, object, string[]]> = [
      ['ann', 'Ann', { phone: '7' }, []],
      ['ann', 'Ann', { name: 'Anna' }, ['name']],
      ['ann', 'Ann', { phone: '8', risk: 0, note: 'x' }, ['risk', 'note']],
      ['hal', 'Ann', { risk: 3, phone: null }, []],
      ['hal', 'Ann', { risk: 3, name: 'x' }, ['name']],
      ['hal', 'Ann', { code: 'x' }, ['code']],
      // By one audience each.
      ['eve', 'Eve', { risk: 4, phone: '9' }, []],
      ['eve', 'Eve', { name: 'Eva' }, ['name']],
      ['eve', 'Bob', { risk: 2 }, []],
      ['eve', 'Bob', { note: '' }, ['note']],
      ['staff', 'Bob', { name: 'Rob', note: 'x', code: 'x3' }, []],
      ['staff', 'Rob', { name: 'Bob' }, []],
      ['support', 'Bob', { note: 'x' }, ['note']],
      ['support', 'Bob', { phone: '5' }, []],
    ];
    for (const [caller, name, change, refused] of tried) {
      const { id, version } = await found(name);
      const path = `/cards/${id}`;
      const input = Object.entries(change)
        .map(([one, value]) => `${one}: ${JSON.stringify(value)}`)
        .join(', ');
      const text = (at: number) =>
        `mutation { changeCard(id: "${id}", change: { version: ${at}, ${input} }) { ${fields} } }`;
      if (refused.length > 0) {
        const message = `This caller may not set ${refused.join(', ')}.`;
        const { json } = await ask(caller, path, 'PATCH', {
          version,
          ...change,
        });
        expect(json).toEqual(refusal(message));
        const { errors } = await query(caller, text(version));
        expect(errors?.[0]?.message).toBe(message);
        const stale = { version: version + 1, ...change };
        expect((await ask(caller, path, 'PATCH', stale)).status).toBe(409);
        continue;
      }
      const { json } = await ask(caller, path, 'PATCH', { version, ...change });
      expect(json).toMatchObject({ ...change, version: version + 1 });
      expect(json).toEqual(shownTo(caller, { ...(await rowOf(id)) }));
      const { data } = await query(caller, text(version + 1));
      expect(data.changeCard).toEqual(
        asGraphQL(shownTo(caller, await rowOf(id))),
      );
    }
    const other = (await rows()).find(({ clinic }) => clinic === 'b');
    const foreign = { version: 1, note: 'x' };
    const { status } = await ask('ann', `/cards/${other.id}`, 'PATCH', foreign);
    expect(status).toBe(404);
  });

  const rowOf = async (id: unknown) =>
    (await rows()).find((row) => row.id === id);

  test('a rule of the service reads and sets what its caller does not', async () => {
    const { id } = (await rows()).find(({ name }) => name === 'Ann');
    const { risk } = await rowOf(id);
    const calmed = await ask('ann', `/cards/${id}/calm`, 'POST');
    expect(calmed.json).toEqual(shownTo('ann', await rowOf(id)));
    const { data } = await query(
      'ann',
      `mutation { calmCard(id: "${id}") { name risk } }`,
    );
    expect(data.calmCard).toEqual({ name: 'Ann', risk: null });
    expect((await rowOf(id)).risk).toBe(risk - 2);
  });

  test('a removal and a transition need an audience of the row that does them', async () => {
    const { id } = await add('staff', {
      ...{ name: 'Fay', login: 'ann', helper: 'hal', code: 'f' },
    });
    const path = `/cards/${id}`;
    const refused = (deed: string) =>
      refusal(`This caller may not ${deed} it.`);
    for (const caller of ['ann', 'hal']) {
      const { json } = await ask(caller, path, 'DELETE');
      expect(json).toMatchObject(refused('remove'));
      const text = `mutation { removeCard(id: "${id}") }`;
      const { errors } = await query(caller, text);
      expect(errors?.[0]).toMatchObject({
        message: 'This caller may not remove it.',
      });
    }
    // The rule is not asked: it tells of the note.
    await ask('staff', path, 'PATCH', { version: 1, note: 'never' });
    const { json } = await ask('hal', `${path}/calm`, 'POST');
    expect(json).toMatchObject(refused('calm'));
    const calmed = await query(
      'hal',
      `mutation { calmCard(id: "${id}") { id } }`,
    );
    expect(calmed.errors?.[0]).toMatchObject({
      message: 'This caller may not calm it.',
    });
    expect((await ask('ann', `${path}/calm`, 'POST')).status).toBe(400);
    expect((await ask('ann b', path, 'DELETE')).status).toBe(404);
    expect((await ask('staff', path, 'DELETE')).status).toBe(204);
  });

  test('rights are judged by the version that is changed, not by the one before it', async () => {
    const { id } = await add('staff', { name: 'Gil', login: 'ann' });
    const next = `update card set version = 2 where id = ${id}`;
    const text = `mutation { changeCard(id: "${id}", change: { version: 2, name: "x", note: "y" }) { id } }`;
    const change = { version: 2, name: 'x', note: 'y' };
    const answer = await overtaken(store.database, next, () =>
      ask('ann', `/cards/${id}`, 'PATCH', change),
    );
    const { errors } = await overtaken(store.database, next, () =>
      query('ann', text),
    );
    expect([answer.json, errors?.[0]?.extensions]).toMatchObject([
      { code: 'CONFLICT', version: 1 },
      { code: 'CONFLICT', version: 1 },
    ]);
    expect(await rowOf(id)).toMatchObject({ name: 'Gil', note: '' });
  });

  test('live lists send what each sees, on both APIs', async () => {
    for (const caller of names) {
      const own = (await rows()).filter((row) => isSeen(caller, row));
      const expected = own.map((row) => shownTo(caller, row));
      const list = await openStream(store, {
        method: 'GET',
        path: '/v1/cards?after=0',
        key: keyOf(caller),
      });
      const events = await list.until(own.length);
      expect(events.map(({ data }) => data)).toEqual(expected);
      list.close();
      const body = {
        query: `subscription { cardAdded(after: 0) { ${fields} } }`,
      };
      const added = await openStream(store, { body, key: keyOf(caller) });
      await eventually(async () => added.events.length >= own.length);
      expect(added.events.map(({ data }) => data.data.cardAdded)).toEqual(
        expected.map(asGraphQL),
      );
      added.close();
    }
  });

  test('a hidden relation leads nowhere, in neither direction', async () => {
    const { id: cardId } = (await rows()).find(({ name }) => name === 'Ann');
    const input = { cardId, room: '1', login: 'ann' };
    await ask('staff', '/visits', 'POST', input);
    const text = '{ visits { room cardId card { name } } }';
    expect((await query('ann', text)).data.visits).toEqual([
      { room: '1', cardId: null, card: null },
    ]);
    expect((await query('staff', text)).data.visits).toEqual([
      { room: '1', cardId: `${cardId}`, card: { name: 'Ann' } },
    ]);
    const back = await query('ann', '{ cards(limit: 1) { visits { room } } }');
    expect(back.errors?.[0]?.message).toBe('This caller may not see cardId.');
    const { json } = await ask('ann', `/visits?cardId=${cardId}`);
    expect(json).toEqual(refusal('This caller may not see cardId.'));
  });

  test('own SQL and conflicts tell nothing of what is hidden', async () => {
    const { json: notes } = await ask('support', '/card-notes');
    expect(notes[0]).toEqual({ note: null, count: expect.any(Number) });
    expect(notes.slice(1)).toEqual([{ note: 'rude', count: 1 }]);
    const { json: all } = await ask('support', '/all-cards');
    const expected = (await rows()).map((row) => shownTo('support', row));
    expect(all).toEqual(expected);
    const same = { name: 'x', phone: '77', login: 'ann' };
    const conflict = {
      code: 'CONFLICT',
      message: 'Another one has this value.',
    };
    const { version } = await add('ann', same);
    expect(await add('ann', same)).toMatchObject(conflict);
    const other = await add('ann', { ...same, phone: '78' });
    const path = `/cards/${other.id}`;
    const change = { version: 1, phone: '77' };
    const { json } = await ask('ann', path, 'PATCH', change);
    expect(json).toMatchObject(conflict);
    expect(version).toBe(1);
  });

  test('own SQL of items compares no hidden member, of joined ones neither', async () => {
    const cards = new Collection<Card, NewCard>(
      store.database,
      CardEntity,
      card.lists,
    );
    const found = async (sub: string, scope: string) => {
      const call = new Call();
      const caller = { id: 9, name: sub, subject: sub, tenant: 'a' };
      call.caller = { ...caller, scopes: [`${scope}:read`] };
      const own = await select(call, cards)`
        select * from ${cards} as card where note = ${'rude'}`;
      const joined = await select(call, cards)`
        select card.* from ${cards} as card
        join ${cards} as other using (id) where other.note = ${'rude'}`;
      expect(joined).toEqual(own);
      return own;
    };
    expect(await found('ann', 'guests')).toEqual([]);
    const [ann] = (await rows()).filter(({ note }) => note === 'rude');
    expect(await found('sam', 'wards')).toMatchObject([{ name: ann.name }]);
  });

  test('an operation with a scope of its own is for its callers only, on both APIs', async () => {
    const own = (await rows())
      .filter((row) => isSeen('ann', row))
      .map((row) => shownTo('ann', row));
    expect((await ask('ann', '/own-cards')).json).toEqual(own);
    const text = `{ ownCards { ${fields} } }`;
    const { data } = await query('ann', text);
    expect(data.ownCards).toEqual(own.map(asGraphQL));
    const name = { name: 'Hello' };
    const { json } = await ask('ann', '/greetings', 'POST', name);
    const greeted = await query(
      'ann',
      'mutation { greet(input: { name: "Hello" }) { name note } }',
    );
    expect(greeted.data.greet).toEqual({ name: 'Hello', note: null });
    expect(json).toMatchObject({ name: 'Hello', login: 'ann' });
    for (const caller of ['staff', 'hal']) {
      const refused = [
        await ask(caller, '/own-cards'),
        await ask(caller, '/greetings', 'POST', name),
      ];
      expect(refused.map(({ status }) => status)).toEqual([403, 403]);
      for (const one of [
        text,
        'mutation { greet(input: { name: "x" }) { id } }',
      ]) {
        const { errors } = await query(caller, one);
        expect(errors?.[0]?.extensions).toMatchObject({ code: 'FORBIDDEN' });
        expect(errors?.[0]?.message).toBe(
          'This needs a token with the scope "guest".',
        );
      }
    }
    const { paths } = store.app.swagger() as any;
    expect(paths['/own-cards'].get['x-scope']).toBe('guests:read');
  });

  test('the contract says what may be absent', async () => {
    const { components } = store.app.swagger() as any;
    const { required, properties } = components.schemas.Card;
    expect(required).toEqual([
      ...['id', 'name', 'phone', 'login', 'helper', 'clinic', 'version'],
    ]);
    expect(properties.risk).toMatchObject({ type: ['integer', 'null'] });
    const { risk } = components.schemas.NewCard.properties;
    expect(risk.type).toBe('integer');
    const { data } = await query(
      'staff',
      '{ __type(name: "Card") { fields { name type { kind } } } }',
    );
    const optional = data.__type.fields
      .filter(({ type }: any) => type.kind !== 'NON_NULL')
      .map(({ name }: any) => name);
    expect(optional).toEqual(expect.arrayContaining(ofGuests));
    expect(optional).not.toContain('name');
  });

  test('a start names what no audience can hide or set, and what is always there', async () => {
    const open = (audience: object) => () =>
      new Collection(store.database, CardEntity, {
        ...card.lists,
        audiences: [{ scope: 'wards', rows: {}, ...audience }],
      } as never);
    for (const audience of [
      { hides: ['version'] },
      { hides: ['id'] },
      { hides: ['nothing'] },
      { writes: ['nothing'] },
      { fixed: ['nothing'] },
    ]) {
      const [[member] = []] = Object.values(audience);
      expect(open(audience)).toThrow(
        `The audience wards cannot hide or set ${member}.`,
      );
    }
    expect(() =>
      resource({
        ...{ name: 'Box', description: 'A box.', path: '/boxes' },
        operations: ['remove'],
        members: {
          clinic: textSchema({ maxLength: 255, description: 'Its.' }),
        },
        audiences: [
          { scope: 'wards', rows: { clinic: 'tenant' }, does: ['calm'] },
        ],
      }),
    ).toThrow('The audience wards of Box cannot calm it.');
    for (const chosen of [
      { owner: 'risk' },
      { audiences: [{ scope: 'wards', rows: { risk: 'subject' } }] },
    ])
      expect(
        () => new Records(store.database, CardEntity, chosen as never),
      ).toThrow('Rows of card are chosen by texts, which risk is not.');
    const reader = { scope: 'wards', rows: {}, writes: [] };
    const owned = new Ownership({ audiences: [reader], members: {} }, 'wards');
    const call = new Call();
    call.caller = { id: 1, scopes: ['wards:write'] } as never;
    expect(() => owned.claim({}, call)).toThrow('may not set any member');
    const [module, ...others] = wardsOn(Collection) as [Module, ...Module[]];
    const careless: Module = {
      ...module,
      open({ database }) {
        const [ofStaff] = card.lists.audiences ?? [];
        const audiences = [{ ...ofStaff, hides: ['phone'] }];
        const lists = { ...card.lists, audiences } as never;
        const cards = new Collection<Card, NewCard>(
          database,
          CardEntity,
          lists,
        );
        return { resources: [card.serve(cards)] };
      },
    };
    const lost = operation({
      name: 'lost',
      description: 'Of no module.',
      path: '/lost',
      input: Type.Object({}),
      output: Type.Object({}, { $id: 'Lost', description: 'Nothing.' }),
      scope: 'nowhere',
    });
    const losing: Module = {
      tag: { name: 'Losing', description: 'Lost.' },
      open: ({ database }) => ({
        resources: [lost.serve(database, async () => ({}) as never)],
      }),
    };
    await expect(startStore({}, { more: [losing] })).rejects.toThrow(
      'lost needs a scope of nowhere, which is no module.',
    );
    const start = startStore({}, { more: [careless, ...others] });
    await expect(start).rejects.toThrow(
      'Card.phone is hidden from some, so it is Type.Optional(nullable(...)) in the REST schema.',
    );
  });
});

test.each([
  { check_in: 'x' },
  { check_in_in: ['x'] },
  { check_in_gte: 'x' },
  { check_in_is_null: true },
  { sort: 'check_in' },
  { sort: 'check_in_desc' },
])('a hidden member that ends as a filter does is known: %j', (query) => {
  const audiences = [{ scope: 'wards', rows: {}, hides: ['check_in'] }];
  const owned = new Ownership({ audiences }, undefined);
  const call = new Call();
  call.caller = { id: 7, name: 'ann', scopes: ['read'] };
  expect(() => owned.narrow(query, call)).toThrow('may not see check_in');
  expect(owned.narrow({ check: 'x' }, call)).toEqual({ check: 'x' });
});
