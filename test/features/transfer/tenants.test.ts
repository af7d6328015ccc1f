import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openModules } from '#engine/api/module.js';
import type { Collection } from '#engine/api/resources/collection.js';
import { importFile } from '#engine/features/transfer/import.js';
import { Records } from '#engine/records/records.js';
import {
  diariesModule,
  openDiariesOn,
} from '../../modules/diaries/diaries.module.ts';
import {
  EntityRecords,
  type Repositories,
} from '../../modules/repositories/entity-records.ts';
import { newFolder } from '../../support/folder.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { storeForAll } from '../../support/store.ts';
import { providerForAll } from '../tokens/provider.ts';

/** Callers who see the rows of all tenants mix none of them. */

const owner = { member: 'createdBy', by: 'tenant' } as const;
const describeHere = citusLayout ? describe.skip : describe;

const collections: Array<[string, Repositories]> = [
  ['Records', Records],
  ['MikroORM', EntityRecords],
];
describeHere.each(collections)('rows of tenants on %s', (_, Collection) => {
  const provider = providerForAll();
  const env: Record<string, string> = {};
  beforeAll(() =>
    Object.assign(env, provider.env, {
      JWT_TENANT: 'org',
      JWT_SCOPES: 'pets:write=write,support=diaries:all',
    }),
  );
  const store = storeForAll(env, undefined, {
    more: [{ ...diariesModule, open: openDiariesOn(Collection, { owner }) }],
  });
  const tokenOf = (org: string, scope = 'pets:write') =>
    provider.token({ scope, org });
  const ask = async (key: string, path: string, method: string, json: object) =>
    (await rest(store, `/v1${path}`, { method, json, key })).json;
  const add = (key: string, path: string, json: object) =>
    ask(key, path, 'POST', json);
  const diaryOf = (org: string) =>
    add(tokenOf(org), '/diaries', { title: `${Math.random()}`, mood: 'fine' });
  const refusal = {
    code: 'BAD_USER_INPUT',
    message: 'diaryId must be the id of one that exists.',
    status: 400,
  };

  async function imported(name: string, items: object[]) {
    const collection = openModules(store.modules, store.database, {})
      .flatMap(({ collections = [] }) => collections)
      .find((one) => one.name === name) as Collection;
    const refused: string[] = [];
    const input = join(await newFolder(), `${name}.ndjson`);
    writeFileSync(input, items.map((one) => JSON.stringify(one)).join('\n'));
    const { result } = await importFile(
      {
        collection,
        maxLength: 10_000,
        signal: new AbortController().signal,
        progress: () => undefined,
        refused: (line, reason) => refused.push(`${line}: ${reason}`),
      },
      { input },
    );
    process.exitCode = undefined;
    // Several lines are sent at once.
    return { result, refused: refused.sort() };
  }

  test('an import refuses lines without a tenant, or with a name that none can have', async () => {
    const lines = [undefined, '', 'key:0', 'key:7', 'a\0', 'x'.repeat(256)];
    const named = (createdBy?: string) => ({
      title: 'x',
      mood: 'y',
      createdBy,
    });
    const { result, refused } = await imported('diaries', [
      ...lines.map(named),
      named('a'),
    ]);
    expect(result).toEqual({ added: 1, same: 0, refused: lines.length });
    const reason = 'createdBy must be the name of a tenant.';
    expect(refused).toContain(`1: ${reason}`);
    for (const line of refused) expect(line).toMatch(/createdBy must be /);
  });

  test('an import refuses relations to rows of other tenants, and takes those of its own', async () => {
    const [{ id: ofA }, { id: ofB }] = [await diaryOf('a'), await diaryOf('b')];
    const { result, refused } = await imported('remarks', [
      { diaryId: ofB, text: 'x', createdBy: 'a' },
      { diaryId: 999_999, text: 'x', createdBy: 'a' },
      { diaryId: ofA, text: 'x', createdBy: 'a' },
      { diaryId: ofB, text: 'x', createdBy: 'b' },
    ]);
    expect(result).toEqual({ added: 2, same: 0, refused: 2 });
    expect(refused).toEqual([`1: ${refusal.message}`, `2: ${refusal.message}`]);
  });

  test('a caller who sees those of all makes no relation across tenants, by no operation', async () => {
    const [{ id: ofA }, { id: ofB }] = [await diaryOf('a'), await diaryOf('b')];
    const support = tokenOf('a', 'pets:write support');
    const remarkOn = (diaryId: number) => ({ diaryId, text: 'x' });
    expect(await add(support, '/remarks', remarkOn(ofB))).toEqual(refusal);
    const { errors } = await graphqlText(
      store,
      {
        query: `mutation { createRemark(input: { diaryId: "${ofB}", text: "x" }) { id } }`,
      },
      support,
    );
    expect(errors?.[0]?.message).toBe(refusal.message);
    const { id, createdBy } = await add(support, '/remarks', remarkOn(ofA));
    expect(createdBy).toBe('a');
    const path = `/remarks/${id}`;
    const change = { version: 1, diaryId: ofB };
    expect(await ask(support, path, 'PATCH', change)).toEqual(refusal);
    const ofTenantB = await add(tokenOf('b'), '/remarks', remarkOn(ofB));
    // Its own tenant is not that of the item.
    const theirs = `/remarks/${ofTenantB.id}`;
    expect(
      await ask(support, theirs, 'PATCH', { version: 1, diaryId: ofA }),
    ).toEqual(refusal);
    const { id: other } = await diaryOf('b');
    expect(
      await ask(support, theirs, 'PATCH', { version: 1, diaryId: other }),
    ).toMatchObject({ diaryId: other, version: 2, createdBy: 'b' });
    expect(
      await ask(support, '/remarks/999999', 'PATCH', change),
    ).toMatchObject({ status: 404 });
  });
});
