// runs: embedded, postgres, pgbouncer, citus-shards, plugins

import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { DeprecatedCall } from '#engine/access/deprecations/usage.js';
import type { Module } from '#engine/api/module.js';
import { contracts } from '#engine/process/contracts.js';
import { modules } from '../../src/modules.ts';
import { sql } from '../support/database-access.ts';
import { openStream } from '../support/events.ts';
import { graphqlText } from '../support/graphql.ts';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { serviceOf } from '../support/service.ts';
import { onNode, storeForAll } from '../support/store.ts';
import { EntityRecords } from './repositories/entity-records.ts';
import { toysModule, toysOn } from './toys/toys.module.ts';

/**
 * A second module, registered beside the pets, has all their features; nothing
 * in src/ refers to it.
 */

const collections: Array<[string, Module]> = [
  ['Records', toysModule],
  ['MikroORM', toysOn(EntityRecords)],
];
describe.each(collections)('toys on %s', (_name, module) => {
  const store = storeForAll({}, undefined, { more: [module] });
  beforeEach(() => sql(store.database, 'truncate toy restart identity'));

  const madeAt = '2026-11-21T12:34:56.789Z';
  const rubber = {
    name: 'Rubber, red',
    kind: 'ball',
    note: 'a,b,,"c"\\ null',
    madeAt,
  };
  const plain = { name: '', kind: 'bone', madeAt };
  const add = (json: unknown) =>
    rest(store, '/v1/toys', { method: 'POST', json });
  const list = (query = '') => rest(store, `/v1/toys${query}`);
  const fields = 'id name kind note madeAt';
  const stock = (count: number) =>
    sql(
      store.database,
      `insert into toy (name, kind, note, made_at)
       select 'toy ' || n, (array['ball', 'bone', 'mouse'])[1 + n % 3], case when n % 2 = 0 then 'a,b' end, '${madeAt}'
       from generate_series(1, ${count}) n`,
    );

  test('a subscription gets the toys of one kind after an id, and then each one that is added', async () => {
    for (const kind of ['bone', 'ball', 'ball']) await add({ ...plain, kind });
    const query =
      'subscription { toyAdded(after: "2", kind: ball) { id madeAt } }';
    const stream = await openStream(store, { body: { query } });
    await stream.until(1);
    for (const kind of ['mouse', 'ball']) await add({ ...plain, kind });
    const toys = (await stream.until(2)).map(({ data }) => data.data.toyAdded);
    expect(toys).toEqual(['3', '5'].map((id) => ({ id, madeAt })));
    stream.close();
    const events = await openStream(store, {
      method: 'GET',
      path: '/v1/toys?after=2&kind=ball',
    });
    const [, five] = await events.until(2);
    expect(five).toEqual({
      event: 'message',
      id: '5',
      data: { id: 5, ...plain, kind: 'ball', note: null },
    });
    events.close();
  });

  describe('through both APIs', () => {
    test('a toy is read as it was added, with nulls, commas and milliseconds', async () => {
      expect(await add(rubber)).toMatchObject({
        status: 201,
        json: { id: 1, ...rubber },
      });
      expect((await add(plain)).json).toEqual({ id: 2, ...plain, note: null });
      const create = `mutation ($input: NewToy!) { createToy(input: $input) { ${fields} } }`;
      const { data } = await graphqlText(store, {
        query: create,
        variables: { input: { ...rubber, note: null } },
      });
      expect(data.createToy).toEqual({ id: '3', ...rubber, note: null });

      const toys = [
        { id: 1, ...rubber },
        { id: 2, ...plain, note: null },
        { id: 3, ...rubber, note: null },
      ];
      expect((await list()).json).toEqual(toys);
      const asText = toys.map((toy) => ({ ...toy, id: `${toy.id}` }));
      expect(
        (await graphqlText(store, { query: `{ toys { ${fields} } }` })).data
          .toys,
      ).toEqual(asText);
      for (const [at, toy] of toys.entries()) {
        expect((await rest(store, `/v1/toys/${toy.id}`)).json).toEqual(toy);
        const { data } = await graphqlText(store, {
          query: `{ toy(id: ${toy.id}) { ${fields} } }`,
        });
        expect(data.toy).toEqual(asText[at]);
      }
    });

    // A list of a sharded table ends at the last id that was generated.
    const onOneNode = typeof citusLayout === 'number' ? test.skip : test;

    onOneNode(
      'ids are exact to the last digit, and pages continue after an id (skipped on shards)',
      async () => {
        await sql(
          store.database,
          `insert into toy (id, name, kind, made_at) values (9223372036854775806, 'x', 'ball', now())`,
        );
        await stock(3);
        const first = await list('?limit=3&kind=ball');
        expect(first.headers).not.toHaveProperty('link');
        expect(first.text).toContain('"id":9223372036854775806');
        const page = await list('?limit=2');
        expect(page.headers.link).toBe(
          `<${store.origin}/v1/toys?limit=2&after=2>; rel="next"`,
        );
        const query =
          '{ toysConnection(first: 3) { edges { cursor node { id } } pageInfo { hasNextPage endCursor } } }';
        const { data } = await graphqlText(store, { query });
        expect(data.toysConnection.pageInfo).toEqual({
          hasNextPage: true,
          endCursor: '3',
        });
        const after =
          '{ toysConnection(after: "3") { edges { node { id } } } }';
        expect(
          (await graphqlText(store, { query: after })).data.toysConnection
            .edges,
        ).toEqual([{ node: { id: '9223372036854775806' } }]);
      },
    );

    test('a refusal names every fault', async () => {
      const message =
        'name must be a string, not a number; kind must be one of ball, bone, mouse; note must be a string, or null, not a number; madeAt is required.';
      const refused = { code: 'BAD_USER_INPUT', message, status: 400 };
      expect((await add({ name: 5, kind: 'cat', note: 7 })).json).toEqual(
        refused,
      );
      expect((await list('?limit=101&kind=cat')).json.message).toBe(
        'kind must be one of ball, bone, mouse; limit must be an integer between 1 and 100.',
      );
      const mutation = `mutation { createToy(input: { name: "x", kind: ball, madeAt: "yesterday" }) { id } }`;
      const { errors } = await graphqlText(store, { query: mutation });
      expect(errors?.[0]?.message).toBe(
        'madeAt must be a date and time like 2030-12-05T00:00:00.000Z.',
      );
    });

    // An EntityRecords stores no names of members.
    const ofRecords = module === toysModule ? test : test.skip;
    ofRecords(
      'a creation is repeated that was stored by a release without the member `kind`',
      async () => {
        const once = 'stored-without-kind';
        const members = ['name', 'madeAt'];
        const headers = { 'idempotency-key': once };
        const send = async (json: object) => {
          const sent = { method: 'POST', json, headers };
          const { status, json: toy } = await rest(store, '/v1/toys', sent);
          return [status, toy.id, toy.kind];
        };
        const [, id] = await send(plain);
        const values = Object.entries({ ...plain, madeAt })
          .filter(([name]) => members.includes(name))
          .sort();
        const digest = hash('sha256', JSON.stringify(values));
        const text = `update idempotency_key set fingerprint = decode($1, 'hex') || convert_to($2, 'UTF8') where hash = sha256($3)`;
        await sql(store.database, text, [digest, `${members}`, once]);
        // The next release's migration has set the new member.
        const kind = 'ball';
        await sql(store.database, `update toy set kind = $1`, [kind]);
        expect(await send(plain)).toEqual([201, id, kind]);
        expect((await send({ ...plain, name: 'other' }))[0]).toBe(422);
      },
    );

    test('creations with one Idempotency-Key through both APIs add one toy', async () => {
      const headers = { 'idempotency-key': 'a-name-for-it' };
      const addOnce = (json: unknown) =>
        rest(store, '/v1/toys', { method: 'POST', json, headers });
      const first = await addOnce(rubber);
      const second = await addOnce({
        ...rubber,
        madeAt: '2026-11-21T13:34:56.789+01:00',
      });
      expect([second.text, second.headers['idempotent-replayed']]).toEqual([
        first.text,
        'true',
      ]);
      const query = `mutation ($input: NewToy!) { createToy(input: $input) { ${fields} } }`;
      const response = await graphqlText(
        store,
        { query, variables: { input: rubber } },
        store.key,
        headers,
      );
      expect(response.headers).toMatchObject({ 'idempotent-replayed': 'true' });
      expect(response.data.createToy).toEqual({
        ...first.json,
        id: `${first.json.id}`,
      });
      expect((await addOnce({ ...rubber, note: null })).json).toMatchObject({
        code: 'IDEMPOTENCY_KEY_REUSED',
      });
      // A key belongs to one operation: a pet may be created with the same key.
      const pet = { name: 'Rex', categoryId: 5 };
      expect(
        await rest(store, '/v1/pets', { method: 'POST', json: pet, headers }),
      ).toMatchObject({ status: 201 });
      expect((await list()).json).toEqual([first.json]);
    });

    test('deprecated operations announce their removal, and their calls are recorded', async () => {
      await stock(1);
      const found = await rest(store, '/v1/toys/1');
      expect(found.headers).toMatchObject({
        deprecation: '@1795219200',
        sunset: 'Wed, 01 Jan 2031 00:00:00 GMT',
        link: `<${store.origin}/v1/toys>; rel="successor-version"`,
      });
      const message = 'There is no toy with the id 2.';
      expect((await rest(store, '/v1/toys/2')).json).toEqual({
        code: 'NOT_FOUND',
        message,
        status: 404,
      });
      await onNode(store, {}, async (node) => {
        await rest(node, '/v1/toys/1');
        await graphqlText(node, { query: '{ toy(id: 1) { id } }' });
      });
      const calls = await store.database.orm.em.fork().findAll(DeprecatedCall);
      const operations = calls.map(({ operation }) => operation);
      expect(operations).toEqual(
        expect.arrayContaining(['getToy', 'Query.toy']),
      );
    });
  });
});

test('both contracts have the toys beside the pets', async () => {
  const both = await contracts(serviceOf([...modules, toysModule]));
  const { paths, components, tags } = JSON.parse(
    both['openapi.json'] as string,
  );
  expect(Object.keys(paths)).toEqual(
    expect.arrayContaining(['/pets', '/toys', '/toys/{toyId}']),
  );
  expect(Object.keys(components.schemas)).toEqual(
    expect.arrayContaining(['NewToy', 'Toy', 'Toys', 'ToyKind']),
  );
  expect(tags.map(({ name }: { name: string }) => name)).toContain('Toys');
  expect(paths['/toys'].get.tags).toEqual(['Toys']);
  const { Toy, NewToy } = components.schemas;
  const type = ['string', 'null'];
  expect(Toy.properties.note).toMatchObject({ type });
  expect(NewToy.properties.note).toMatchObject({ type, maxLength: 1000 });
  expect(both['schema.graphql']).toContain('createToy(');
  expect(both['schema.graphql']).toContain('toys(');
});

test('docs/add-a-module.md shows only lines of the modules that run, and they stay small', () => {
  const linesIn = (module: string) =>
    readdirSync(`test/modules/${module}`).flatMap((name) =>
      readFileSync(`test/modules/${module}/${name}`, 'utf8')
        .trimEnd()
        .split(/\n */),
    );
  const toys = linesIn('toys');
  expect(toys.length).toBeLessThanOrEqual(350);
  const checkups = linesIn('checkups');
  expect(checkups.length).toBeLessThanOrEqual(490);
  const tests = ['services', 'checkups'].map((name) =>
    readFileSync(`test/modules/${name}.test.ts`, 'utf8'),
  );
  const known = new Set([
    ...toys,
    ...checkups,
    ...linesIn('practice').map((line) => line.replace('Collection', 'Records')),
    ...tests.join('\n').split(/\n */),
  ]);
  const blocks = [
    ...readFileSync('docs/add-a-module.md', 'utf8').matchAll(
      /^```ts\n([\s\S]*?)^```$/gm,
    ),
  ];
  const shown = blocks.map(([, block = '']) => block.trimEnd().split('\n'));
  expect(shown.map((lines) => lines.length > 3)).toEqual(Array(4).fill(true));
  expect(shown.flat().filter((line) => !known.has(line.trim()))).toEqual([]);
});
