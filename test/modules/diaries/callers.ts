import { graphqlThrice } from '../../support/graphql.ts';
import { beforeAll } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import type { storeForAll } from '../../support/store.ts';

/**
 * The keys of two callers, one with `diaries:all`, and a diary with a remark of
 * each of the two, before all tests of a file.
 */
export function callersForAll(store: ReturnType<typeof storeForAll>) {
  const ask = (
    key: string,
    method: string,
    path: string,
    json?: object,
    headers = {},
  ) => rest(store, `/v1${path}`, { method, json, key, headers });
  const callers = {
    ada: '',
    bob: '',
    all: '',
    owners: [] as string[],
    ofAda: undefined as any,
    ofBob: undefined as any,
    adasRemark: undefined as any,
    bobsRemark: undefined as any,
    ask,
    add: async (key: string, path: string, json: object) =>
      (await ask(key, 'POST', path, json)).json,
    list: async (key: string, path: string) =>
      (await ask(key, 'GET', path)).json,
    query: (key: string, text: string) =>
      graphqlThrice(store, { query: text }, key),
  };
  const issue = async (name: string, scope: string) => {
    const { id, key } = await store.keys.issue({ name, scope });
    callers.owners.push(`key:${id}`);
    return key;
  };
  beforeAll(async () => {
    const { add } = callers;
    callers.owners.length = 0;
    const ada = await issue('ada', 'write');
    const bob = await issue('bob', 'diaries:write');
    const all = await issue('all', 'diaries:write diaries:all');
    const secret = { title: 'Secret', mood: 'fine' };
    const ofAda = await add(ada, '/diaries', secret);
    const ofBob = await add(bob, '/diaries', secret);
    const [adasRemark, bobsRemark] = [
      await add(ada, '/remarks', { diaryId: ofAda.id, text: 'a' }),
      await add(bob, '/remarks', { diaryId: ofBob.id, text: 'b' }),
    ];
    Object.assign(callers, { ada, bob, all });
    Object.assign(callers, { ofAda, ofBob, adasRemark, bobsRemark });
  });
  return callers;
}
