// runs: embedded, postgres, postgres-12, postgres-18

import { globSync, readFileSync } from 'node:fs';
import type { Module } from '#engine/api/module.js';
import { openStream } from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import { beforeAll, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { onNode, storeForAll } from '../support/store.ts';
import { practiceModule, practiceOn } from './practice/practice.module.ts';
import { EntityRecords } from './repositories/entity-records.ts';

/** A module of declared resources (docs/add-a-module.md). */

// Citus allows a foreign key between distributed tables only when both are
// distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

test('the five tables take 400 lines, the wishes of the second day 150, without the migration', () => {
  const ofSecondDay = /full-visit|reports/;
  const files = globSync('test/modules/practice/*.ts').filter(
    (file) => !/create-practice/.test(file),
  );
  const { true: later = [], false: first = [] } = Object.groupBy(
    files,
    (file) => `${ofSecondDay.test(file)}`,
  );
  const linesOf = (files: string[]) =>
    files.flatMap((file) => readFileSync(file, 'utf8').trim().split('\n'))
      .length;
  expect(linesOf(first)).toBeLessThanOrEqual(400);
  expect(linesOf(later)).toBeLessThanOrEqual(150);
});

const collections: Array<[string, Module]> = [
  ['Records', practiceModule],
  ['MikroORM', practiceOn(EntityRecords)],
];
describeHere.each(collections)('a practice on %s', (_name, module) => {
  const store = storeForAll({}, undefined, { more: [module] });

  type Answer = { status: number; code?: string; message?: string; item?: any };

  /** Numbers as text, so that both APIs show one item alike. */
  const alike = (item: any) =>
    item &&
    Object.fromEntries(
      Object.entries(item).map(([name, value]) => [
        name,
        value === null ? null : `${value}`,
      ]),
    );
  const send = async (
    method: string,
    path: string,
    json?: object,
  ): Promise<Answer> => {
    const answer = await rest(store, `/v1${path}`, { method, json });
    const { code, message, status: _, ...item } = answer.json ?? {};
    return code
      ? { status: answer.status, code, message }
      : { status: answer.status, item: alike(item) };
  };
  const mutate = async (field: string, type = ''): Promise<Answer> => {
    const query = `mutation { one: ${field} ${type} }`;
    const { data, errors = [] } = await graphqlText(store, { query });
    const [error] = errors;
    if (!error) return { status: 200, item: alike(data.one) };
    const { code, status } = error.extensions;
    return { status, code, message: error.message };
  };
  /** A value as GraphQL's literal. */
  const literal = (value: any): string =>
    `${value}` === '[object Object]'
      ? `{ ${Object.entries(value).map(([name, one]) => `${name}: ${/^state$/.test(name) ? one : literal(one)}`)} }`
      : JSON.stringify(value);

  const idOf = async (path: string, json: object): Promise<number> => {
    const { item } = await send('POST', path, json);
    return Number(item.id);
  };
  const newPet = () => idOf('/pets', { name: 'Rex', categoryId: 1 });
  let owners = 0;
  const newOwner = () => {
    owners += 1;
    return idOf('/owners', { name: 'Ada', email: `${owners}@example.org` });
  };
  const newVisit = async () =>
    idOf('/visits', {
      petId: await newPet(),
      ownerId: await newOwner(),
      at: '2027-01-03T10:00:00.000Z',
      reason: 'vaccination',
    });
  let tags = 0;
  const newTag = () => {
    tags += 1;
    return idOf('/tags', { name: `tag ${tags}` });
  };

  interface Kind {
    type: string;
    path: string;
    fields: string;
    input(): Promise<object>;
    /** Without it, the resource has no change. */
    change?: object;
    wrong: object;
    isFollowed?: true;
  }
  const kinds: Kind[] = [
    {
      type: 'Owner',
      path: '/owners',
      fields: '{ id name email phone version }',
      input: async () => ({ name: 'Eve', email: `${Math.random()}@a.org` }),
      change: { phone: '030 1' },
      wrong: { name: 7 },
      isFollowed: true,
    },
    {
      type: 'Visit',
      path: '/visits',
      fields: '{ id petId ownerId at reason note state version weekday }',
      input: async () => ({
        petId: await newPet(),
        ownerId: await newOwner(),
        at: '2027-01-03T10:00:00.000Z',
        reason: 'vaccination',
      }),
      change: { state: 'done', note: 'well' },
      wrong: { petId: 1, ownerId: 1, at: 'now', reason: 'ab' },
      isFollowed: true,
    },
    {
      type: 'Treatment',
      path: '/treatments',
      fields: '{ id visitId name price version }',
      input: async () => ({
        visitId: await newVisit(),
        name: 'injection',
        price: '12.50',
      }),
      change: { price: '13.00' },
      wrong: { visitId: 1, name: 'injection', price: '1.234' },
    },
    {
      type: 'Tag',
      path: '/tags',
      fields: '{ id name version }',
      input: async () => ({ name: `${Math.random()}` }),
      change: { name: 'other' },
      wrong: {},
    },
    {
      type: 'PetTag',
      path: '/pet-tags',
      fields: '{ id petId tagId version }',
      input: async () => ({ petId: await newPet(), tagId: await newTag() }),
      wrong: { petId: 1, tagId: 99_999 },
    },
  ];

  describe.each(kinds)('$path', (kind) => {
    const { type, path, fields, input, change, wrong } = kind;
    const create = (json: object) => {
      const literals = literal(json);
      return mutate(`create${type}(input: ${literals})`, fields);
    };

    test('what one API creates, both find and list', async () => {
      const first = await send('POST', path, await input());
      const second = await create(await input());
      for (const { item } of [first, second]) {
        const found = await send('GET', `${path}/${item.id}`);
        expect(found).toEqual({ status: 200, item: expect.anything() });
        const one = type.charAt(0).toLowerCase() + type.slice(1);
        const many = path
          .slice(1)
          .replace(/-(\w)/g, (_, next) => next.toUpperCase());
        const query = `{ one: ${one}(id: "${item.id}") ${fields} list: ${many}(limit: 100) ${fields}
          page: ${many}Connection(first: 100) { totalCount nodes ${fields} } }`;
        const { data } = await graphqlText(store, { query });
        const listed = await rest(store, `/v1${path}?limit=100`, {
          headers: { prefer: 'count=exact' },
        });
        const seen = (one: any) => ({ ...alike(one), at: undefined });
        const dateless = seen(data.one);
        expect(seen(found.item)).toEqual(dateless);
        expect(listed.json.map(seen)).toContainEqual(dateless);
        expect(data.list.map(seen)).toEqual(listed.json.map(seen));
        expect(data.page.nodes).toEqual(data.list);
        expect(`${data.page.totalCount}`).toBe(listed.headers['x-total-count']);
      }
    });

    test('both refuse an input in the same words', async () => {
      const refused = await send('POST', path, wrong);
      expect(refused).toMatchObject({ status: 400, code: 'BAD_USER_INPUT' });
      const isTyped = Object.values(wrong).every(
        (value) => typeof value === 'string' || Number.isInteger(value),
      );
      if (isTyped && Object.keys(wrong).length > 1)
        expect(await create(wrong)).toEqual(refused);
    });

    test('both change with a version only, and remove', async () => {
      const { item } = await send('POST', path, await input());
      if (change) {
        const next = { ...change, version: 1 };
        const changed = await send('PATCH', `${path}/${item.id}`, next);
        expect(changed.item).toMatchObject({ ...change, version: '2' });
        const stale = await send('PATCH', `${path}/${item.id}`, next);
        expect(stale).toMatchObject({ status: 409, code: 'CONFLICT' });
        const field = `change${type}(id: "${item.id}", change: ${literal(next)})`;
        expect(await mutate(field, fields)).toEqual(stale);
      }
      const removed = await send('DELETE', `${path}/${item.id}`);
      expect(removed.status).toBe(204);
      const gone = await send('DELETE', `${path}/${item.id}`);
      expect(gone).toMatchObject({ status: 404, code: 'NOT_FOUND' });
      expect(await mutate(`remove${type}(id: "${item.id}")`)).toEqual(gone);
    });

    test('only a followed list has events', async () => {
      const stream = await openStream(store, {
        method: 'GET',
        path: `/v1${path}`,
      });
      const isFollowed = /event-stream/.test(
        `${stream.headers['content-type']}`,
      );
      stream.close();
      expect(isFollowed).toBe(kind.isFollowed === true);
    });
  });

  test('a transition has no body, one rule and one answer in both APIs', async () => {
    const id = await newVisit();
    const cancel = `/visits/${id}/cancel`;
    const refused = await send('POST', cancel, {});
    expect(refused).toMatchObject({
      status: 400,
      message: 'This operation takes no body.',
    });
    const { status, item } = await send('POST', cancel);
    expect([status, item.state, item.version]).toEqual([200, 'cancelled', '2']);
    const again = await send('POST', cancel);
    expect(again).toMatchObject({
      status: 409,
      message: 'The visit is cancelled.',
    });
    expect(await mutate(`cancelVisit(id: "${id}")`, '{ id }')).toEqual(again);
    const missing = await send('POST', '/visits/0/cancel');
    expect(missing.status).toBe(404);
    expect(await mutate('cancelVisit(id: 0)', '{ id }')).toEqual(missing);
  });

  test('transitions that lose a race are judged by their rule again, and a change beside one takes nothing from it', async () => {
    for (let round = 1; round <= 5; round += 1) {
      const id = await newVisit();
      const cancel = () => send('POST', `/visits/${id}/cancel`);
      const field = `cancelVisit(id: "${id}")`;
      const change = { version: 1, note: 'It sleeps.' };
      const [changed, ...cancelled] = await Promise.all([
        send('PATCH', `/visits/${id}`, change),
        cancel(),
        mutate(field, '{ id }'),
        cancel(),
        mutate(field, '{ id }'),
      ]);
      expect([200, 409]).toContain(changed.status);
      const done = cancelled.filter(({ status }) => status === 200);
      expect(done).toHaveLength(1);
      const refused = cancelled.filter(({ status }) => status !== 200);
      const message = 'The visit is cancelled.';
      const refusal = { status: 409, code: 'CONFLICT', message };
      expect(refused).toEqual([refusal, refusal, refusal]);
    }
  });

  test('a computed member is in both APIs, and in no input', async () => {
    const { item } = await send('GET', `/visits/${await newVisit()}`);
    expect(item.weekday).toBe('0');
    const change = { version: 1, weekday: 3 };
    expect(await send('PATCH', `/visits/${item.id}`, change)).toMatchObject({
      status: 400,
      message: 'weekday cannot be changed.',
    });
  });

  test('relations are fields of both types, also across a table of links', async () => {
    const [petId, ownerId] = [await newPet(), await newOwner()];
    const [first, second] = [await newTag(), await newTag()];
    for (const tagId of [second, first])
      await send('POST', '/pet-tags', { petId, tagId });
    const at = '2027-01-03T10:00:00.000Z';
    const visitId = await idOf('/visits', {
      petId,
      ownerId,
      at,
      reason: 'cough',
    });
    await send('POST', '/treatments', { visitId, name: 'syrup', price: '3' });
    const query = `{ visit(id: ${visitId}) {
      pet { id tags { id pets(limit: 2) { id } } visits(limit: 2) { id } }
      owner { id visits(limit: 2) { id } }
      treatments(limit: 2) { price visit { id } }
    } }`;
    const { data, errors } = await graphqlText(store, { query });
    expect(errors).toBeUndefined();
    // Lists below others are short, so four levels need no limits.
    const natural = `{ pets { visits { owner { visits { pet { id } } } treatments { visit { id } } } tags { pets { id } } } }`;
    const { errors: refused } = await graphqlText(store, { query: natural });
    expect(refused).toBeUndefined();
    const visit = { id: `${visitId}` };
    const tag = (id: number) => ({ id: `${id}`, pets: [{ id: `${petId}` }] });
    expect(data.visit).toEqual({
      pet: {
        id: `${petId}`,
        tags: [tag(second), tag(first)],
        visits: [visit],
      },
      owner: { id: `${ownerId}`, visits: [visit] },
      treatments: [{ price: '3.00', visit }],
    });
  });

  /** Sends one input to both APIs. */
  const addFull = async (input: object, headers = {}) => {
    const answer = await rest(store, '/v1/full-visits', {
      method: 'POST',
      json: input,
      headers,
    });
    const query =
      'mutation ($input: NewFullVisit!) { createFullVisit(input: $input) { id treatments { name price } } }';
    const { data, errors } = await graphqlText(
      store,
      { query, variables: { input } },
      store.key,
      headers,
    );
    return { answer, data, errors };
  };
  const treatment = (members: object = {}) => ({
    name: 'injection',
    price: '12.50',
    ...members,
  });
  const fullVisit = async (members: object = {}) => ({
    petId: await newPet(),
    ownerId: await newOwner(),
    at: '2027-01-03T10:00:00.000Z',
    reason: 'vaccination',
    treatments: [treatment(), treatment({ name: 'syrup', price: '3' })],
    ...members,
  });
  const total = async (path: string) => {
    const headers = { prefer: 'count=exact' };
    const listed = await rest(store, `/v1${path}`, { headers });
    return Number(listed.headers['x-total-count']);
  };

  test('a visit and its treatments are added in one request, in both APIs, once for a key', async () => {
    const input = await fullVisit();
    const before = await total('/treatments');
    const headers = { 'idempotency-key': 'full' };
    const { answer, data } = await addFull(input, headers);
    expect(answer.status).toBe(201);
    const treatments = [
      { name: 'injection', price: '12.50' },
      { name: 'syrup', price: '3.00' },
    ];
    expect(answer.json).toMatchObject({ reason: 'vaccination', treatments });
    expect(data.createFullVisit).toEqual({
      id: `${answer.json.id}`,
      treatments,
    });
    expect(await total('/treatments')).toBe(before + 2);
    const other = await addFull({ ...input, reason: 'cough' }, headers);
    expect(other.answer.json.code).toBe('IDEMPOTENCY_KEY_REUSED');
    // A refusal repeats nothing.
    expect(other.answer.headers['idempotent-replayed']).toBeUndefined();
    expect(other.errors?.[0]?.extensions.code).toBe('IDEMPOTENCY_KEY_REUSED');
  });

  test.each<[string, object]>([
    ['other digits', { treatments: [treatment({ price: '12.5' })] }],
    ['no digits', { treatments: [treatment({ price: '12.50' })] }],
    ['null for an absent member', { note: null }],
    ['a default', { state: 'planned' }],
    ['another offset', { at: '2027-01-03T11:00:00.0000+01:00' }],
    ['an unknown member', { colour: 'red' }],
  ])('%s: the same addition for a key, in both APIs', async (what, members) => {
    const treatments = [treatment({ price: '12.50' })];
    const input = await fullVisit({ treatments });
    const headers = { 'idempotency-key': what.replaceAll(' ', '-') };
    const once = { method: 'POST', headers };
    const first = await rest(store, '/v1/full-visits', {
      ...once,
      json: input,
    });
    const { colour, ...known }: Record<string, unknown> = { ...members };
    const again = await rest(store, '/v1/full-visits', {
      ...once,
      json: { ...input, ...known, ...(colour ? { colour } : {}) },
    });
    expect(again.json).toEqual(first.json);
    expect(again.headers['idempotent-replayed']).toBe('true');
    const { data } = await addFull({ ...input, ...known }, headers);
    expect(data.createFullVisit.id).toBe(`${first.json.id}`);
  });

  test.each<[object, string]>([
    [
      { treatments: [treatment(), treatment(), treatment({ price: 'x' })] },
      'treatments[2].price must be a decimal of at most 10 digits before the point and 2 after it.',
    ],
    [
      { treatments: [] },
      'treatments must be an array of 1 to 20 values, each an object.',
    ],
    [
      { treatments: Array.from({ length: 21 }, () => treatment()) },
      'treatments must be an array of 1 to 20 values, each an object.',
    ],
    [
      { reason: 'x', treatments: [treatment({ name: '\u0000', price: '-' })] },
      'reason must be 3 to 1000 characters long; treatments[0].name must be free of U+0000 and of lone surrogates; treatments[0].price must be a decimal of at most 10 digits before the point and 2 after it.',
    ],
    [{ ownerId: 999_999 }, 'ownerId must be the id of one that exists.'],
  ])(
    'of %j nothing is added, and both APIs name the place',
    async (members, message) => {
      const input = await fullVisit(members);
      const before = [await total('/visits'), await total('/treatments')];
      const { answer, errors } = await addFull(input);
      expect(answer.json).toEqual({
        code: 'BAD_USER_INPUT',
        message,
        status: 400,
      });
      expect(errors?.[0]).toMatchObject({
        message,
        extensions: { code: 'BAD_USER_INPUT', status: 400 },
      });
      expect([await total('/visits'), await total('/treatments')]).toEqual(
        before,
      );
    },
  );

  test.each<[unknown, string]>([
    ['all', 'treatments must be an array, not a string.'],
    [{}, 'treatments must be an array, not an object.'],
    [[treatment(), 7], 'treatments[1] must be an object, not a number.'],
    [[null], 'treatments[0] must be an object, not null.'],
    [[{ price: '1' }], 'treatments[0].name is required.'],
    [undefined, 'treatments is required.'],
  ])(
    'treatments that GraphQL cannot express: %j',
    async (treatments, message) => {
      const json = await fullVisit({ treatments });
      const answer = await rest(store, '/v1/full-visits', {
        method: 'POST',
        json,
      });
      expect([answer.status, answer.json.message]).toEqual([400, message]);
    },
  );

  test('each treatment of a mutation costs a unit', async () => {
    const treatments = Array.from({ length: 20 }, () => treatment());
    const variables = { input: await fullVisit({ treatments }) };
    const query =
      'mutation ($input: NewFullVisit!) { createFullVisit(input: $input) { id } }';
    await onNode(store, { GRAPHQL_MAX_COST: '21' }, async (node) => {
      const { errors } = await graphqlText(node, { query, variables });
      expect(errors?.[0]?.message).toMatch(/cost too much: 22, at most 21/);
    });
  });

  describe('the reports', () => {
    let petId: number;
    let ownerId: number;
    beforeAll(async () => {
      [petId, ownerId] = [await newPet(), await newOwner()];
      const visits: Array<[at: string, prices: string[]]> = [
        ['2031-01-31T23:59:59.999Z', ['9999999999.99', '9999999999.99']],
        ['2031-02-01T00:00:00.000Z', ['0.10', '0.20']],
        ['2031-02-28T10:00:00.000Z', []],
      ];
      for (const [at, prices] of visits) {
        const input = { petId, ownerId, at, reason: 'cough' };
        const visitId = await idOf('/visits', input);
        for (const price of prices)
          await idOf('/treatments', { visitId, name: `at ${price}`, price });
      }
    });
    const ask = async (path: string, field: string) => {
      const { json } = await rest(store, `/v1${path}`);
      const { data, errors } = await graphqlText(store, {
        query: `{ one: ${field} }`,
      });
      return { ofRest: json, ofGraphQL: data?.one, errors };
    };

    test('sums are exact, and the same in both APIs', async () => {
      const { ofRest, ofGraphQL } = await ask(
        `/months-of-pets?petId=${petId}`,
        `monthsOfPet(petId: ${petId}) { month visits total }`,
      );
      const months = [
        ['2031-01-01T00:00:00.000Z', 1, '19999999999.98'],
        ['2031-02-01T00:00:00.000Z', 2, '0.30'],
      ];
      expect(ofRest).toEqual(
        months.map(([month, visits, total]) => ({ month, visits, total })),
      );
      expect(ofGraphQL).toEqual(
        months.map(([month, visits, total]) => ({
          month,
          visits: `${visits}`,
          total,
        })),
      );
    });

    test('a report of a time has its input checked', async () => {
      const [from, before] = ['2031-02-01T00:00:00Z', '2031-03-01T00:00:00Z'];
      const { ofRest, ofGraphQL } = await ask(
        `/turnover?from=${from}&before=${before}`,
        `turnover(from: "${from}", before: "${before}") { name treatments total }`,
      );
      const names = ['at 0.10', 'at 0.20'];
      expect(ofRest.map(({ name }: { name: string }) => name)).toEqual(names);
      expect(ofGraphQL.map(({ name }: { name: string }) => name)).toEqual(
        names,
      );
      const refused = await ask(
        '/turnover?from=now',
        'turnover(from: "now", before: "then") { total }',
      );
      expect(refused.ofRest.message).toBe(
        'from must be a date and time like 2030-12-05T00:00:00.000Z; before is required.',
      );
      expect(refused.errors?.[0]?.message).toBe(
        'from must be a date and time like 2030-12-05T00:00:00.000Z; before must be a date and time like 2030-12-05T00:00:00.000Z.',
      );
    });

    test('an export has the items as their collections show them', async () => {
      const { ofRest, ofGraphQL } = await ask(
        `/files?ownerId=${ownerId}`,
        `fileOfOwner(ownerId: ${ownerId}) { owner { id } visits { id weekday } treatments { price } }`,
      );
      const { json: visits } = await rest(
        store,
        `/v1/visits?ownerId=${ownerId}`,
      );
      expect(ofRest.visits).toEqual(visits);
      expect(ofGraphQL.visits.map(({ weekday }: any) => weekday)).toEqual(
        visits.map(({ weekday }: any) => weekday),
      );
      expect(ofRest.treatments).toHaveLength(4);
      const missing = await ask(
        '/files?ownerId=999999',
        'fileOfOwner(ownerId: 999999) { owner { id } }',
      );
      expect(missing.ofRest).toEqual({
        code: 'NOT_FOUND',
        status: 404,
        message: 'There is no such owner.',
      });
      expect(missing.errors?.[0]?.extensions.code).toBe('NOT_FOUND');
    });
  });

  test('OpenAPI and GraphQL describe the treatments of a new visit', async () => {
    const { components } = store.app.swagger() as any;
    expect(components.schemas.NewFullVisit.properties.treatments).toEqual({
      type: 'array',
      items: { $ref: '#/components/schemas/TreatmentOfNewVisit' },
      minItems: 1,
      maxItems: 20,
      description: 'What the vet does in it.',
    });
    const query =
      '{ __type(name: "NewFullVisit") { inputFields { name type { kind ofType { kind ofType { ofType { name } } } } } } }';
    const { data } = await graphqlText(store, { query });
    const [field] = data.__type.inputFields.filter(
      ({ name }: { name: string }) => name === 'treatments',
    );
    expect(field.type.ofType.ofType.ofType.name).toBe('TreatmentOfNewVisit');
  });
});
