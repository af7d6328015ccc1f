// runs: embedded

import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from '../../../support/database-access.ts';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../../../support/jest.ts';
import {
  type MeasuredServer,
  startMeasured,
} from '../../../support/metrics.ts';
import {
  bringsServers,
  cli,
  eventually,
  killAll,
} from '../../../support/process.ts';
import { linesOf } from '../../../support/process-log.ts';
import { rest } from '../../../support/rest.ts';
import {
  hasPostgres,
  TestPostgres,
} from '../../../support/servers/postgres.ts';
import { connected } from '../../../support/session.ts';
import { startStore } from '../../../support/store.ts';

const where = bringsServers && hasPostgres ? describe : describe.skip;

where('reads go to replicas (where PostgreSQL is installed)', () => {
  let primary: TestPostgres;
  let replica1: TestPostgres;
  let replica2: TestPostgres;
  let server: MeasuredServer;
  let database: string;
  let count = 0;

  beforeAll(async () => {
    primary = await TestPostgres.start();
    replica1 = await primary.replica('one');
    replica2 = await primary.replica('two');
    await primary.query('create role shop login');
    // The settings of a role must not change how servers are distinguished.
    await primary.query(`alter role shop set timezone = 'Asia/Tokyo'`);
  });
  afterAll(() =>
    Promise.all([primary, replica1, replica2].map((each) => each.remove())),
  );

  beforeEach(() => {
    count += 1;
    database = `shop_${count}`;
    return primary.query(`create database ${database} owner shop`);
  });
  /** Servers of a single test. */
  let others: TestPostgres[] = [];
  afterEach(async () => {
    await killAll();
    await Promise.all(others.map((each) => each.remove()));
    others = [];
  });
  async function addServer(
    starting: Promise<TestPostgres>,
  ): Promise<TestPostgres> {
    others.push(await starting);
    return starting;
  }

  /** The role has no special rights. */
  const urlOf = (postgres: TestPostgres) =>
    postgres.url(database).replace('postgres@', 'shop@');
  const environment = () => ({
    DATABASE_URL: urlOf(primary),
    BOOTSTRAP_API_KEY: 'a-key-for-the-tests-of-read-nodes',
  });

  async function startWith(
    urls: string[],
    env: Record<string, string> = {},
  ): Promise<void> {
    const nodes = {
      DATABASE_READ_URLS: urls.join(','),
      READ_MAX_LAG_MS: '60000',
    };
    server = await startMeasured({ ...environment(), ...nodes, ...env });
  }
  /** Starts the server and waits until each node has answered a read. */
  async function start(
    nodes = [replica1, replica2],
    env: Record<string, string> = {},
  ): Promise<void> {
    await startWith(nodes.map(urlOf), env);
    for (const node of nodes) await readUntil(() => hasAnswered(node));
  }

  const lines = () => linesOf(server.output.stdout);
  const isAbout = (node: TestPostgres, name: unknown) =>
    `${name}`.endsWith(`:${node.port}`);
  const hasLogged = (text: string, about: TestPostgres) =>
    lines().some(
      ({ msg, why = '', node }) =>
        `${msg} ${why}`.includes(text) && isAbout(about, node),
    );
  const readsOf = async ({ port }: TestPostgres) => {
    const name = `animal_store_read_node_reads_total{node="127.0.0.1:${port}"}`;
    return (await server.metrics()).get(name) ?? 0;
  };
  const hasAnswered = async (by: TestPostgres) => (await readsOf(by)) > 0;

  const create = (name: string) =>
    rest(server, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });
  const names = async () =>
    (await rest(server, '/v1/pets?limit=100')).json.map(
      ({ name }: { name: string }) => name,
    );

  async function readUntil(
    isTrue: () => boolean | Promise<boolean>,
  ): Promise<void> {
    await eventually(async () => {
      expect((await rest(server, '/v1/pets')).status).toBe(200);
      return isTrue();
    });
  }

  /** The nodes apply no changes during the work. */
  async function whileBehind(
    nodes: TestPostgres[],
    work: () => Promise<unknown>,
  ): Promise<void> {
    await Promise.all(
      nodes.map((node) => node.set({ recovery_min_apply_delay: '1h' })),
    );
    await work().finally(() =>
      Promise.all(
        nodes.map((node) => node.set({ recovery_min_apply_delay: 0 })),
      ),
    );
  }
  const readsFromReplicas = async () => {
    const reads = async () =>
      (await readsOf(replica1)) + (await readsOf(replica2));
    const before = await reads();
    await readUntil(async () => (await reads()) > before);
  };
  const addElsewhere = () =>
    primary.query(
      `insert into pet (name, category_id, status) values ('Rex', 5, 'sold')`,
      [],
      database,
    );
  /**
   * Creates pets and finds each one at once. @param more further reads after
   * each creation
   */
  async function readOwn(
    count: number,
    more: () => Promise<unknown> = names,
  ): Promise<void> {
    for (let at = 0; at < count; at += 1) {
      const { id } = (await create(`Rex ${at}`)).json;
      expect((await rest(server, `/v1/pets/${id}`)).json).toMatchObject({
        name: `Rex ${at}`,
      });
      await more();
    }
  }

  test('a client reads its creations at once, although the replicas lack them', async () => {
    await start();
    let count = 0;
    const lists = async () => expect(await names()).toHaveLength(++count);
    await whileBehind([replica1, replica2], () => readOwn(20, lists));
    await readsFromReplicas();
    expect(await names()).toHaveLength(20);
  });

  test('a replica that falls too far behind is not used until it has caught up, and the log reports it', async () => {
    await start([replica1], { READ_MAX_LAG_MS: '1000' });
    await whileBehind([replica1], async () => {
      await addElsewhere();
      await readUntil(() => hasLogged('too far behind', replica1));
      expect(await names()).toEqual(['Rex']);
    });
    await readsFromReplicas();
  });

  test('a silent replica delays no request, a killed one fails none, and both are used again', async () => {
    await start();
    await create('Rex');
    let isOver = false;
    const readers = Array.from({ length: 8 }, async () => {
      while (!isOver) expect(await names()).toEqual(['Rex']);
    });
    const areUsed = (count: number) =>
      readUntil(
        () =>
          lines().filter(({ msg }) => msg === 'a read node is used').length >=
          count,
      );
    replica1.pause();
    await readUntil(() => hasLogged('is not used', replica1)).finally(() =>
      replica1.resume(),
    );
    await areUsed(3);
    await replica2.kill();
    await readUntil(() => hasLogged('is not used', replica2));
    await replica2.start();
    await areUsed(4);
    isOver = true;
    await Promise.all(readers);
  });

  test('a process that writes nothing reads pets from replicas that are behind, but keys from the primary', async () => {
    await start();
    await whileBehind([replica1, replica2], async () => {
      await addElsewhere();
      await readsFromReplicas();
      const { stdout } = await cli(
        ['keys', 'issue', '--name', 'new', '--json'],
        environment(),
      );
      expect(
        (await rest(server, '/v1/pets', { key: JSON.parse(stdout).key }))
          .status,
      ).toBe(200);
    });
  });

  test('a client also finds a creation at once when it was sent again without the name of its statement', async () => {
    const env = {
      DATABASE_URL: urlOf(primary),
      DATABASE_READ_URLS: urlOf(replica1),
      DATABASE_POOL_MAX: '2',
    };
    const store = await startStore(
      { ...env, READ_MAX_LAG_MS: '60000' },
      { database: { env, drop: async () => {} } },
    );
    const metrics = store.parts.flatMap(({ metrics = [] }) => metrics);
    const counter = metrics.find(
      ({ name }) => name === 'service_read_node_reads_total',
    );
    const add = (name: string) =>
      rest(store, '/v1/pets', {
        method: 'POST',
        json: { name, categoryId: 5 },
      });
    await Promise.all([
      add('Rex'),
      sql(store.database, 'select pg_sleep(0.1)'),
    ]);
    // The replica has the first pet, and serves reads.
    await eventually(async () => {
      await store.database.read({ name: 'test one', text: 'select 1' }, []);
      const reads = [counter?.read()].flat() as [number, string][];
      return reads.some(([, node]) => node !== 'primary');
    });
    await whileBehind([replica1], async () => {
      await Promise.all(
        [1, 2].map(() => sql(store.database, 'deallocate all')),
      );
      const { id } = (await add('Bella')).json;
      expect((await rest(store, `/v1/pets/${id}`)).json).toMatchObject({
        name: 'Bella',
      });
    });
    await store.close();
  });

  test('when no read node answers, the primary serves reads, and the service starts and ends', async () => {
    const hole = createServer().listen(0, '127.0.0.1');
    await once(hole, 'listening');
    const silent = (hole.address() as AddressInfo).port;
    await startWith([
      'postgres://shop@127.0.0.1:1/shop',
      `postgres://shop@127.0.0.1:${silent}/shop`,
    ]);
    await create('Rex');
    expect(await names()).toEqual(['Rex']);
    expect(await server.stop()).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.not.stringContaining('"err"'),
    });
    hole.close();
  });

  test('another database and another schema of a replica, a writable server of others, and a promoted replica are not used; the log gives the reason at intervals', async () => {
    await primary.query(`create database other_${count} template template0`);
    const foreign = await addServer(TestPostgres.startForeign());
    for (const statement of [
      'create table pet (id bigserial, name text, category_id bigint, status text)',
      "insert into pet (name, category_id, status) values ('foreign', 5, 'sold')",
    ])
      await foreign.query(statement, []);
    const replica3 = await addServer(primary.replica('three'));
    await startWith([
      replica1.url(`other_${count}`),
      `${urlOf(replica2)}?options=-c%20search_path%3Dpg_catalog`,
      foreign.url(),
      urlOf(replica3),
    ]);
    await readUntil(() => hasAnswered(replica3));
    await replica3.promote();
    await create('Rex');
    await replica3.query(
      `insert into pet (name, category_id, status) values ('not here', 5, 'sold')`,
      [],
      database,
    );
    await readUntil(
      () =>
        hasLogged('it is another database', replica1) &&
        hasLogged('its search_path leads to the schema pg_catalog', replica2) &&
        hasLogged('it is another server', foreign) &&
        hasLogged('it has been promoted', replica3),
    );
    for (let at = 0; at < 200; at += 1) expect(await names()).toEqual(['Rex']);
    // Without intervals, each read would log its failure and the node's return.
    const read = lines().filter(({ status }) => status === 200).length;
    expect(
      lines().filter(({ msg }) => /^a read node/.test(msg)).length,
    ).toBeLessThan(read / 4);
  });

  test('hanging sessions of a healthy replica delay no request', async () => {
    // A read waits a quarter of this for a read node.
    await start([replica1], { DATABASE_STATEMENT_TIMEOUT_MS: '10000' });
    const reading = `select pid from pg_stat_activity where datname = '${database}' and application_name = 'animal-store'`;
    const pids = (await replica1.query<{ pid: number }>(reading)).map(
      ({ pid }) => pid,
    );
    expect(pids.length).toBeGreaterThan(0);
    const signal = (name: NodeJS.Signals) =>
      pids.forEach((pid) => void process.kill(pid, name));
    signal('SIGSTOP');
    const isServed = async () => {
      expect((await rest(server, '/v1/pets')).status).toBe(200);
      await eventually(async () =>
        hasLogged('has not answered within', replica1),
      );
    };
    await isServed().finally(() => signal('SIGCONT'));
  });

  test('an address with several replicas behind it never gives the writer stale pets', async () => {
    let turn = 0;
    const proxy = createServer((near) => {
      turn += 1;
      const far = connect((turn % 2 ? replica1 : replica2).port, '127.0.0.1');
      near.pipe(far).pipe(near);
      near.on('error', () => far.destroy()).on('close', () => far.destroy());
      far.on('error', () => near.destroy());
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    await whileBehind([replica2], async () => {
      await startWith([
        `postgres://shop@127.0.0.1:${(proxy.address() as AddressInfo).port}/${database}`,
      ]);
      await readOwn(30, () => Promise.all(Array.from({ length: 4 }, names)));
    });
    proxy.close();
  });

  test('a client never loses a pet that it has seen, although one replica is later than the other', async () => {
    await start();
    await replica1.set({ recovery_min_apply_delay: '150ms' });
    await replica2.set({ recovery_min_apply_delay: '400ms' });
    let isOver = false;
    const writing = (async () => {
      while (!isOver) {
        await addElsewhere();
        await pause(20);
      }
    })();
    let seen = 0;
    for (let at = 0; at < 300; at += 1) {
      const { length } = await names();
      expect(length).toBeGreaterThanOrEqual(Math.min(seen, 100));
      seen = length;
      await pause(5);
    }
    expect(seen).toBeGreaterThan(10);
    isOver = true;
    await writing;
    await Promise.all(
      [replica1, replica2].map((each) =>
        each.set({ recovery_min_apply_delay: 0 }),
      ),
    );
  });

  test('a client never loses a pet that the primary has shown, although a replica lacks it', async () => {
    await start([replica1]);
    await replica1.set({ max_standby_streaming_delay: -1 });
    await primary.query(
      'create table first (); create table second ()',
      [],
      database,
    );
    const arrived = `select from pg_class where relname = 'second'`;
    await eventually(
      async () => (await replica1.query(arrived, [], database)).length === 1,
    );
    // The replica replays a truncation when no session reads that table.
    const [first, second] = [
      await connected(replica1.url(database)),
      await connected(replica1.url(database)),
    ];
    try {
      await first.query('begin; select from first');
      await second.query('begin; select from second');
      await primary.query('truncate first', [], database);
      await create('Bella');
      await primary.query('truncate second', [], database);
      await addElsewhere();
      expect(await names()).toEqual(['Bella', 'Rex']);
      await first.end();
      await eventually(
        async () =>
          (await replica1.query('select from pet', [], database)).length === 1,
      );
      for (let at = 0; at < 20; at += 1) {
        await pause(5);
        expect(await names()).toEqual(['Bella', 'Rex']);
      }
    } finally {
      await Promise.all([first.end(), second.end()]);
    }
    await readsFromReplicas();
    expect(await names()).toEqual(['Bella', 'Rex']);
  });

  test('after a creation with an unknown outcome the primary serves reads, although the lag is permitted', async () => {
    await start([replica1]);
    const lost = `
      insert into pet (name, category_id, status) values ('Rex', 5, 'sold');
      create function lose() returns trigger language plpgsql as $$ begin raise sqlstate '40003'; end $$;
      create trigger lose before insert on pet execute function lose()`;
    await whileBehind([replica1], async () => {
      await primary.query(lost, [], database);
      expect(await create('Rex')).toMatchObject({ status: 503 });
      expect(await names()).toEqual(['Rex']);
    });
  });

  test('reads continue after a creation that reaches no server', async () => {
    const lonely = await addServer(TestPostgres.start());
    const replica = await addServer(lonely.replica('replica'));
    await lonely.query(`create database ${database}`);
    await startWith([replica.url(database)], {
      DATABASE_URL: lonely.url(database),
      READ_MAX_LAG_MS: '3600000',
    });
    await readUntil(() => hasAnswered(replica));
    await lonely.kill();
    // Readiness has detected the broken connections, so the creation is not
    // sent, and its outcome is known.
    for (let at = 0; at < 3; at += 1) await rest(server, '/readyz');
    expect((await create('Rex')).json).toMatchObject({
      message: expect.stringContaining('cannot be reached'),
    });
    for (let at = 0; at < 10; at += 1)
      expect((await rest(server, '/v1/pets')).status).toBe(200);
  });

  test('after a failover a replica with more changes of the old primary than the new primary has is not read', async () => {
    const old = await addServer(TestPostgres.start());
    const [next, ahead] = [
      await addServer(old.replica('next')),
      await addServer(old.replica('ahead')),
    ];
    await old.query('create table noise (text text)');
    await next.stop();
    await old.query(
      `insert into noise select repeat('x', 100) from generate_series(1, 20000)`,
    );
    await eventually(
      async () => (await ahead.query('select from noise')).length === 20000,
    );
    await old.kill();
    await next.start();
    await next.promote();
    await startWith([ahead.url()], { DATABASE_URL: next.url() });
    await readOwn(20);
    await readUntil(() =>
      hasLogged('it has not followed the last promotion', ahead),
    );
  });
});
