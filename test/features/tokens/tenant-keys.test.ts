// runs: embedded, postgres

import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import {
  DogEntity,
  KennelEntity,
  kennelModules,
  tenantKeys,
} from '../../modules/kennels/kennels.module.ts';
import { createEmptyDatabase, optionsFor } from '../../support/database.ts';
import { sql } from '../../support/database-access.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';
import { providerForAll } from './provider.ts';

/** Relations between tables of tenants, which PostgreSQL keeps. */

describe('kennels of two practices', () => {
  const provider = providerForAll();
  const env: Record<string, string> = {};
  beforeAll(() =>
    Object.assign(env, provider.env, {
      JWT_TENANT: 'org',
      JWT_SCOPES: 'staff=kennels:write,guest=front:write',
    }),
  );
  const store = storeForAll(env, undefined, { more: kennelModules });
  const tokenOf = (org: string) =>
    provider.token({ org, sub: 'ada', scope: 'staff' });
  const ask = (org: string, path: string, method = 'GET', json?: object) =>
    rest(store, `/v1${path}`, { method, json, key: tokenOf(org) });
  const add = async (org: string, path: string, json: object) => {
    const { json: added, status } = await ask(org, path, 'POST', json);
    expect([status, added]).toEqual([201, expect.anything()]);
    return added;
  };
  const kennelOf = async (org: string) =>
    (await add(org, '/kennels', { name: 'k' })).id;

  test('the migration is what migration:create writes', async () => {
    const { schema } = store.database.orm;
    expect(await schema.getUpdateSchemaSQL()).toBe('');
    const whole = await schema.getCreateSchemaSQL();
    for (const statement of tenantKeys) expect(whole).toContain(statement);
  });

  test('PostgreSQL refuses a relation to a row of another practice', async () => {
    const [ours, theirs] = [await kennelOf('a'), await kennelOf('b')];
    const dog = await add('a', '/dogs', { name: 'd', kennelId: ours });
    const write = (column: string, id: number) =>
      sql(
        store.database,
        `update dog set "${column}" = ${id} where id = ${dog.id}`,
      );
    await write('former_id', ours);
    for (const column of ['kennel_id', 'former_id'])
      await expect(write(column, theirs)).rejects.toMatchObject({
        code: '23503',
      });
    const other = await add('b', '/dogs', { name: 'd', kennelId: theirs });
    await write('mother_id', dog.id);
    await expect(write('mother_id', other.id)).rejects.toMatchObject({
      code: '23503',
    });
  });

  test('an operation that writes such a relation answers 400, on both APIs', async () => {
    const [ours, theirs] = [await kennelOf('a'), await kennelOf('b')];
    await add('a', '/moves', { kennelId: ours });
    const { status, json } = await ask('a', '/moves', 'POST', {
      kennelId: theirs,
    });
    expect([status, json]).toEqual([
      400,
      {
        code: 'BAD_USER_INPUT',
        message: 'kennelId must be the id of one that exists.',
        status: 400,
      },
    ]);
    const query = `mutation { moveDog(input: { kennelId: "${theirs}" }) { id } }`;
    const answer = await graphqlText(store, { query }, tokenOf('a'));
    expect(answer.errors?.[0]?.message).toBe(json.message);
  });

  test('code creates for a named practice, and sees no more than it', async () => {
    const theirs = await kennelOf('b');
    const guest = provider.token({ org: 'c', sub: 'gus', scope: 'guest' });
    const found = async (json: object, headers = {}) => {
      const options = { method: 'POST', key: guest, json, headers };
      return rest(store, '/v1/foundations', options);
    };
    const once = { 'idempotency-key': 'founded-once' };
    const { status, json } = await found({ clinic: 'a', name: 'new' }, once);
    expect([status, json]).toEqual([
      201,
      {
        id: expect.any(Number),
        name: 'new',
        clinic: 'a',
        changedBy: 'subject:gus',
        version: 1,
      },
    ]);
    expect((await found({ clinic: 'a', name: 'new' }, once)).json).toEqual(
      json,
    );
    expect((await ask('a', `/kennels/${json.id}`)).json).toEqual(json);
    expect((await ask('b', `/kennels/${json.id}`)).status).toBe(404);
    const refused = await found({ clinic: 'a', name: 'x', formerId: theirs });
    expect([refused.status, refused.json.message]).toEqual([
      400,
      'formerId must be the id of one that exists.',
    ]);
    const own = await rest(store, `/v1/kennels/${json.id}`, { key: guest });
    expect(own.status).toBe(403);
  });

  test('a kennel with dogs stays; one that dogs have left is set to null in them', async () => {
    const [first, second] = [await kennelOf('a'), await kennelOf('a')];
    const dog = await add('a', '/dogs', {
      name: 'd',
      kennelId: first,
      formerId: second,
    });
    const kept = await ask('a', `/kennels/${first}`, 'DELETE');
    expect([kept.status, kept.json.message]).toEqual([
      409,
      'It cannot be removed, because others refer to it.',
    ]);
    const { status } = await ask('a', `/kennels/${second}`, 'DELETE');
    expect(status).toBe(204);
    const { json } = await ask('a', `/dogs/${dog.id}`);
    expect(json).toEqual({ ...dog, formerId: null });
  });

  test('a database without these keys serves, and gets them by a migration', async () => {
    const { env: own, drop } = await createEmptyDatabase();
    const options = await optionsFor(own);
    const { entities } = modelOf([]);
    const model = { entities: [...entities, KennelEntity, DogEntity] };
    await Database.use(options, { ...model, migrations: [] }, async (one) => {
      const { schema } = one.orm;
      const earlier = (await schema.getCreateSchemaSQL())
        .replace('create unique index', 'create index')
        .replace(/\("practice", ("\w+_id")\)/g, '($1)')
        .replace(/\("\w+", "id"\)( on delete)/g, '("id")$1')
        .replace(/set null \(.*\)/, 'set null')
        .replace('dog_practice_', 'dog_');
      await schema.execute(earlier);
      await one.assertColumns();
      const rulesOf = async () =>
        sql(
          one,
          `select pg_get_constraintdef(oid) from pg_constraint
            where contype = 'f' and conrelid = 'dog'::regclass order by 1`,
        );
      const single = [
        ['FOREIGN KEY (former_id) REFERENCES kennel(id) ON DELETE SET NULL'],
        ['FOREIGN KEY (kennel_id) REFERENCES kennel(id)'],
        ['FOREIGN KEY (mother_id) REFERENCES dog(id)'],
      ];
      expect(await rulesOf()).toEqual(single);
      const missing = ['former', 'kennel', 'mother'].map(
        (name) => `dog FOREIGN KEY (practice, ${name}_id)`,
      );
      expect((await one.examine()).keys).toBe(missing.join(', '));
      const { up, down } = await schema.getUpdateSchemaMigrationSQL();
      await schema.execute(up);
      expect(await schema.getUpdateSchemaSQL()).toBe('');
      expect((await one.examine()).keys).toBeNull();
      expect(await rulesOf()).toEqual([
        [
          'FOREIGN KEY (practice, former_id) REFERENCES kennel(clinic, id) ON DELETE SET NULL (former_id)',
        ],
        ['FOREIGN KEY (practice, kennel_id) REFERENCES kennel(clinic, id)'],
        ['FOREIGN KEY (practice, mother_id) REFERENCES dog(practice, id)'],
      ]);
      await schema.execute(down);
      expect(await rulesOf()).toEqual(single);
    });
    await drop();
  });
});
