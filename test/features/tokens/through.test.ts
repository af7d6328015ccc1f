// runs: embedded, postgres

import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import { Records } from '#engine/records/records.js';
import {
  int64Schema,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { createdBy } from '../../modules/through/through.module.ts';
import { openStream } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { storeForAll } from '../../support/store.ts';
import { callTool } from '../assistants/mcp.ts';
import { providerForAll } from './provider.ts';

/**
 * A list by members of other rows tells nothing of rows and members that its
 * caller does not see.
 */

const text = (description: string) =>
  textSchema({ maxLength: 50, description });
const operations = ['list', 'create', 'remove', 'follow'] as const;

const person = resource({
  name: 'Person',
  description: 'Who has cases.',
  path: '/persons',
  operations,
  members: { name: text('The name.'), kind: text('Of which kind.') },
  audiences: [
    { scope: 'desk', rows: { firm: 'tenant' } },
    { scope: 'lobby', rows: { firm: 'tenant', kind: 'subject' } },
    { scope: 'guard', rows: { firm: 'tenant' }, hides: ['name'] },
    { scope: 'east', rows: { firm: 'tenant', kind: 'subject' } },
    { scope: 'west', rows: { firm: 'tenant' } },
  ],
});
const PersonEntity = defineEntity({
  name: 'Person',
  tableName: 'person',
  properties: person.columns,
  indexes: [
    { properties: ['firm', 'id'] },
    { properties: ['firm', 'kind', 'id'] },
  ],
});

const case_ = resource({
  name: 'Case',
  description: 'What is asked.',
  path: '/cases',
  operations,
  members: {
    title: text('Its title.'),
    personId: Type.Optional(nullable(int64Schema({ description: 'Whose.' }))),
    east: Type.Optional(nullable(text('Who is in the east.'))),
    west: Type.Optional(nullable(text('Who is in the west.'))),
  },
  audiences: [
    { scope: 'desk', rows: { firm: 'tenant' } },
    { scope: 'lobby', rows: { firm: 'tenant' } },
    { scope: 'guard', rows: { firm: 'tenant' } },
    { scope: 'clerk', rows: { firm: 'tenant' } },
    { scope: 'cook', rows: { firm: 'tenant' }, hides: ['personId'] },
    { scope: 'east', rows: { firm: 'tenant', east: 'subject' } },
    { scope: 'west', rows: { firm: 'tenant', west: 'subject' } },
  ],
  through: {
    person_name: { by: 'personId', member: 'name', schema: text('A name.') },
    person_kind: { by: 'personId', member: 'kind', schema: text('A kind.') },
  },
  in: ['person_kind'],
  nulls: ['person_name'],
  combinations: [['person_name'], ['person_kind']],
  prefixes: ['person_name'],
});
const key = '(array[lower("person_name") collate "C"])';
const views = ['"firm"', '"firm", "east"', '"firm", "west"'];
const indexes = views.flatMap((view, at) =>
  ['', '"person_name", ', '"person_kind", '].flatMap((filter, by) =>
    ['', `${key}, `].map((order) => {
      const name = `case_${at}_${by}_${order.length}`;
      const keys = `${view}, ${filter}${order}"id"`;
      return { name, expression: `create index "${name}" on "case" (${keys})` };
    }),
  ),
);
const CaseEntity = defineEntity({
  name: 'Case',
  tableName: 'case',
  properties: {
    ...case_.columns,
    personId: () =>
      p
        .manyToOne(PersonEntity)
        .mapToPk()
        .joinColumn('person_id')
        .deleteRule('no action')
        .nullable(),
  },
  indexes: [{ properties: ['personId', 'id'] }, ...indexes],
});
const tags = ['desk', 'lobby', 'guard', 'clerk', 'cook', 'east', 'west'];
const statements = await createdBy([PersonEntity, CaseEntity] as never[]);
const desk: Module = {
  tag: { name: 'Desk', description: 'Persons and cases.' },
  entities: [PersonEntity, CaseEntity],
  migrations: [migrationOf('2027_09_02_000000_create_case', statements)],
  open({ database }) {
    const persons = new Records<ItemOf<typeof person>, NewOf<typeof person>>(
      database,
      PersonEntity,
      person.lists,
    );
    const cases = new Records<ItemOf<typeof case_>, NewOf<typeof case_>>(
      database,
      CaseEntity,
      case_.lists,
    );
    return { resources: [person.serve(persons), case_.serve(cases)] };
  },
};
const others = tags.slice(1).map(
  (name): Module => ({
    tag: { name, description: `For a ${name}.` },
    open: () => ({}),
  }),
);

interface Caller {
  sub: string;
  org: string;
  scope: string;
}
const callers: Record<string, Caller> = {
  ...{ desk: { sub: 'd', org: 'a', scope: 'desk' } },
  ...{ other: { sub: 'd', org: 'b', scope: 'desk' } },
  ...{ lobby: { sub: 'red', org: 'a', scope: 'lobby' } },
  ...{ both: { sub: 'red', org: 'a', scope: 'lobby guard' } },
  ...{ guard: { sub: 'g', org: 'a', scope: 'guard' } },
  ...{ clerk: { sub: 'c', org: 'a', scope: 'clerk' } },
  ...{ poles: { sub: 'red', org: 'a', scope: 'east west' } },
  ...{ east: { sub: 'red', org: 'a', scope: 'east' } },
  ...{ cook: { sub: 'k', org: 'a', scope: 'cook' } },
};

const describeHere = citusLayout ? describe.skip : describe;
describeHere('cases of persons', () => {
  const provider = providerForAll();
  const env: Record<string, string> = {};
  beforeAll(() =>
    Object.assign(env, provider.env, {
      JWT_TENANT: 'org',
      MCP: 'true',
      JWT_SCOPES: tags.map((tag) => `${tag}=${tag}:write`).join(),
    }),
  );
  const store = storeForAll(env, undefined, { more: [desk, ...others] });
  const keyOf = (name: string) => provider.token({ ...callers[name] });
  const ask = (name: string, path: string, json?: object, headers = {}) =>
    rest(store, `/v1${path}`, {
      ...{ method: json ? 'POST' : 'GET', json, headers, key: keyOf(name) },
    });
  const namesOf = async (name: string, path: string) => {
    const { json } = await ask(name, path);
    expect(json).toEqual(expect.any(Array));
    return json.map(({ title }: any) => title);
  };

  beforeAll(async () => {
    const add = async (caller: string, name: string, kind: string) =>
      (await ask(caller, '/persons', { name, kind })).json.id;
    const file = (
      caller: string,
      title: string,
      personId: unknown,
      poles = {},
    ) => ask(caller, '/cases', { title, personId, ...poles });
    for (const org of ['desk', 'other']) {
      const zed = await add(org, 'Zed', 'red');
      const amy = await add(org, 'Amy', 'blue');
      const bob = await add(org, 'Bob', 'red');
      await file(org, `${org} zed`, zed, { east: 'red', west: 'red' });
      await file(org, `${org} amy`, amy, { east: 'red' });
      await file(org, `${org} none`, null);
      await file(org, `${org} bob`, bob, { west: 'red' });
    }
  });

  test.each([
    ['desk', ['amy', 'bob', 'zed', 'none']],
    ['lobby', ['bob', 'zed', 'none']],
    ['poles', ['amy', 'bob', 'zed']],
    ['east', ['zed']],
    ['both', ['bob', 'zed', 'none']],
  ])(
    '%s gets, counts and walks only what it sees in their order',
    async (caller, seen) => {
      const titles = seen.map((one) => `desk ${one}`);
      const sorted = await namesOf(caller, '/cases?sort=person_name');
      expect(sorted).toEqual(titles);
      const { data } = await graphqlText(
        store,
        {
          query:
            '{ casesConnection(sort: person_name_desc, first: 1) { totalCount nodes { title } pageInfo { endCursor } } }',
        },
        keyOf(caller),
      );
      expect(data.casesConnection.totalCount).toBe(seen.length);
      expect(data.casesConnection.nodes).toEqual([{ title: titles.at(-1) }]);
      const { endCursor } = data.casesConnection.pageInfo;
      const next = await namesOf(
        caller,
        `/cases?sort=person_name_desc&after=${endCursor}`,
      );
      expect(next).toEqual(titles.toReversed().slice(1));
    },
  );

  test.each([
    ['desk', ['desk amy']],
    ['lobby', []],
    ['both', []],
    ['poles', ['desk amy']],
    ['east', []],
    ['other', ['other amy']],
  ])('%s filters by what it sees', async (caller, titles) => {
    for (const filter of ['person_name=Amy', 'person_name_prefix=a']) {
      expect(await namesOf(caller, `/cases?${filter}`)).toEqual(titles);
      const prefer = { prefer: 'count=exact' };
      const { headers } = await ask(
        caller,
        `/cases?${filter}`,
        undefined,
        prefer,
      );
      expect(headers['x-total-count']).toBe(`${titles.length}`);
    }
    const blue = await namesOf(caller, '/cases?person_kind_in=blue');
    expect(blue).toEqual(caller === 'both' ? ['desk amy'] : titles);
    const none = await namesOf(caller, '/cases?person_name_is_null=true');
    const isOfPole = ['poles', 'east'].includes(caller);
    const ownNone = `${caller === 'other' ? 'other' : 'desk'} none`;
    expect(none).toEqual(isOfPole ? [] : [ownNone]);
    const target = { origin: store.origin, key: keyOf(caller) };
    const given = { person_name: 'Amy' };
    const { structuredContent } = await callTool(target, 'list_cases', given);
    const found = structuredContent.items.map(({ title }: any) => title);
    expect(found).toEqual(titles);
  });

  test.each([
    ['guard', 'This caller may not see name.'],
    ['clerk', 'This needs a token with the scope "desk".'],
    ['cook', 'This caller may not see personId.'],
  ])('%s is refused what it does not see at all', async (caller, message) => {
    const refusal = { code: 'FORBIDDEN', status: 403, message };
    for (const path of [
      ...['person_name=Amy', 'person_name_prefix=a', 'sort=person_name'],
      ...['sort=person_name_desc', 'person_name_is_null=true'],
    ]) {
      expect((await ask(caller, `/cases?${path}`)).json).toEqual(refusal);
      const stream = await openStream(store, {
        ...{ method: 'GET', path: `/v1/cases?${path}`, key: keyOf(caller) },
      });
      expect(stream.status).toBeGreaterThanOrEqual(400);
      stream.close();
    }
    const { errors } = await graphqlText(
      store,
      { query: '{ casesConnection(person_name: "Amy") { totalCount } }' },
      keyOf(caller),
    );
    expect(errors?.[0]).toMatchObject({ message });
    expect(await namesOf(caller, '/cases')).toHaveLength(4);
  });

  test('lists at once of callers with other rights do not share their rows', async () => {
    const path = '/cases?person_name=Amy';
    const all = ['desk', 'lobby', 'other', 'both', 'desk', 'lobby'];
    const found = await Promise.all(all.map((name) => namesOf(name, path)));
    expect(found).toEqual([
      ['desk amy'],
      [],
      ['other amy'],
      [],
      ['desk amy'],
      [],
    ]);
  });

  test('a live list has what its caller sees', async () => {
    const path = '/v1/cases?person_name=Amy';
    const open = (name: string) =>
      openStream(store, { method: 'GET', path, key: keyOf(name) });
    const [seen, unseen] = [await open('desk'), await open('lobby')];
    const { json } = await ask('desk', '/persons?limit=100');
    const { id } = json.find(({ name }: any) => name === 'Amy');
    await ask('desk', '/cases', { title: 'new', personId: id });
    const [event] = await seen.until(1);
    expect(event?.data).toMatchObject({ title: 'new' });
    expect(unseen.events).toEqual([]);
    await rest(store, `/v1/cases/${event?.data.id}`, {
      ...{ method: 'DELETE', key: keyOf('desk') },
    });
    seen.close();
    unseen.close();
  });
});
