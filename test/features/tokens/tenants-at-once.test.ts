// runs: embedded, postgres

import { currentTransaction } from '#engine/database/database.js';
import { surgeryWith } from '../../modules/surgery/surgery.module.ts';
import { sql } from '../../support/database-access.ts';
import { openStream, type Stream } from '../../support/events.ts';
import { graphqlText } from '../../support/graphql.ts';
import { beforeAll, describe, expect, test } from '../../support/jest.ts';
import { eventually, onPostgres, ownsSessions } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { openSession } from '../../support/session.ts';
import { storeForAll } from '../../support/store.ts';
import { providerForAll } from './provider.ts';

/** Transactions of several tenants at once, and live lists of their rows. */

const describeHere = citusLayout ? describe.skip : describe;

describeHere('clinics whose writes leave an audit', () => {
  const provider = providerForAll();
  const env: Record<string, string> = {};
  beforeAll(() =>
    Object.assign(env, provider.env, {
      JWT_TENANT: 'org',
      JWT_SCOPES: 'staff=surgery:write,support=surgery:all',
    }),
  );
  let pause = async (_name: string): Promise<unknown> => undefined;
  const module = surgeryWith((name) => pause(name));
  const store = storeForAll(env, undefined, { more: [module] });
  const staffOf = (org: string, sub = 'ada', scope = 'staff') =>
    provider.token({ org, sub, scope });

  const add = async (key: string, name: string) =>
    rest(store, '/v1/vets', { method: 'POST', key, json: { name } });
  const addByMutation = async (key: string, name: string) => {
    const text = `mutation { createVet(input: { name: "${name}" }) { id } }`;
    return graphqlText(store, { query: text }, key);
  };
  const namesFor = async (key: string, path = '') => {
    const { json } = await rest(store, `/v1/vets?limit=100${path}`, { key });
    return json.map(({ name }: { name: string }) => name);
  };
  const follow = (key: string, after = 0) =>
    openStream(store, { method: 'GET', path: `/v1/vets?after=${after}`, key });
  const subscribe = (key: string) => {
    const query = 'subscription { vetAdded(after: 0) { id name } }';
    return openStream(store, { body: { query }, key });
  };
  const seenBy = ({ events }: Stream): string[] =>
    events.map(({ data }) => (data.data?.vetAdded ?? data).name);

  /** A transaction of clinic A that is open until it is let go. */
  const heldOpen = async (name: string) => {
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    pause = async (own) => {
      if (own !== name) return;
      begun.resolve();
      await held.promise;
    };
    const added = add(staffOf('a'), name);
    await begun.promise;
    return async () => {
      held.resolve();
      pause = async () => undefined;
      return added;
    };
  };

  // The embedded store has one connection, which a transaction holds.
  const ofConnections = onPostgres ? test : test.skip;

  ofConnections(
    'do not wait for each other, and see at once what they have added',
    async () => {
      const end = await heldOpen('held');
      const key = staffOf('b');
      expect(await add(key, 'by REST')).toMatchObject({ status: 201 });
      const { data } = await addByMutation(key, 'by GraphQL');
      expect(data.createVet).toBeTruthy();
      const expected = ['by REST', 'by GraphQL'];
      expect(await namesFor(key)).toEqual(expected);
      const vets = await graphqlText(
        store,
        { query: '{ vets { name } }' },
        key,
      );
      expect(vets.data.vets.map(({ name }: any) => name)).toEqual(expected);
      // A colleague of the open one does not wait, either.
      expect(await add(staffOf('a', 'bob'), 'beside')).toMatchObject({
        status: 201,
      });
      expect(await end()).toMatchObject({ status: 201 });
      expect(await namesFor(staffOf('a'))).toEqual(['held', 'beside']);
    },
  );

  ofConnections(
    'have live lists that wait for an open transaction, also new and resumed ones',
    async () => {
      const key = staffOf('a', 'eve');
      const end = await heldOpen('first');
      const { json: second } = await add(key, 'second');
      const streams = [await follow(key), await subscribe(key)];
      // A new one begins before what is not visible yet.
      const query = 'subscription { vetAdded { id name } }';
      const fresh = await openStream(store, { body: { query }, key });
      const resumed = await follow(key, second.id - 2);
      await add(staffOf('b'), 'elsewhere');
      await end();
      for (const stream of [...streams, fresh, resumed]) {
        await eventually(async () => seenBy(stream).includes('second'));
        const seen = seenBy(stream).slice(-2);
        expect(seen).toEqual(['first', 'second']);
        stream.close();
      }
    },
  );

  test('have each row once and in order in every live list, whatever is open or killed', async () => {
    const session = ownsSessions ? await sessionBeside() : undefined;
    const kill = async () => {
      const { rows } = currentTransaction() ?? {};
      const own = { name: '', text: 'select pg_backend_pid()' };
      const [[pid] = []] = (await rows?.(own, [])) ?? [];
      await session?.query('select pg_terminate_backend($1)', [pid]);
      await rows?.(own, []);
    };
    pause = async (name) => {
      const turns = Math.floor(Math.random() * 200);
      for (let turn = 0; turn < turns; turn += 1)
        await new Promise((next) => setImmediate(next));
      if (name.endsWith('killed') && session) await kill();
      if (name.endsWith('killed')) throw new Error('killed');
    };
    const orgs = ['x', 'y', 'z'];
    const support = staffOf('x', 'sue', 'staff support');
    const keys = [...orgs.map((org) => staffOf(org)), support];
    const streams = await Promise.all(
      keys.flatMap((key) => [follow(key), subscribe(key)]),
    );
    const writers = Array.from({ length: 12 }, async (_, writer) => {
      const org = orgs[writer % 3] ?? '';
      const key = staffOf(org, `writer ${writer}`);
      for (let turn = 0; turn < 8; turn += 1) {
        const isKilled = turn === 4 && writer % 2 === 0;
        const name = `${org} ${writer} ${turn}${isKilled ? ' killed' : ''}`;
        const write = turn % 2 === 0 ? add : addByMutation;
        await write(key, name);
      }
    });
    await Promise.all(writers);
    await session?.end();
    for (const [at, stream] of streams.entries()) {
      const names = await namesFor(keys[at >> 1] ?? '');
      const isOfClinics = names.filter((name: string) => /^[xyz] /.test(name));
      expect(isOfClinics).toHaveLength(at < 6 ? 30 : 90);
      await eventually(async () => seenBy(stream).length >= names.length);
      expect(seenBy(stream)).toEqual(names);
      stream.close();
    }
  });

  const sessionBeside = async () => {
    const asked = 'select current_database()';
    const [[name] = []] = await sql<[string]>(store.database, asked);
    return openSession({ env: { DATABASE_URL: `postgres://host/${name}` } });
  };

  test('lock nothing in tables that no live list follows', async () => {
    const held: unknown[] = [];
    pause = async () => {
      const text = `select classid, mode from pg_locks
        where locktype = 'advisory' and pid = pg_backend_pid()`;
      held.push(...(await sql(store.database, text)));
    };
    await add(staffOf('c'), 'alone');
    pause = async () => undefined;
    // That of the vets, which hinders no other.
    expect(held).toEqual([[expect.any(String), 'ShareLock']]);
  });
});
