import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from '../../support/database-access.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { bringsServers, cli, eventually, killAll, type ServerProcess, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { hasPostgres, TestPostgres } from '../../support/servers/postgres.ts';
import { startStore } from '../../support/store.ts';
import { linesOf } from '../../support/workers.ts';

const where = bringsServers && hasPostgres ? describe : describe.skip;

where('reads go to replicas (where PostgreSQL is installed)', () => {
  let primary: TestPostgres;
  let one: TestPostgres;
  let two: TestPostgres;
  let server: ServerProcess;
  let database: string;
  let count = 0;

  beforeAll(async () => {
    primary = await TestPostgres.start();
    one = await primary.replica('one');
    two = await primary.replica('two');
    await primary.query('create role shop login');
    // Whatever a role sets: servers are told apart all the same.
    await primary.query(`alter role shop set timezone = 'Asia/Tokyo'`);
  });
  afterAll(() => Promise.all([primary, one, two].map((each) => each.remove())));

  beforeEach(() => {
    count += 1;
    database = `shop_${count}`;
    return primary.query(`create database ${database} owner shop`);
  });
  /** Servers of one test. */
  let others: TestPostgres[] = [];
  afterEach(async () => {
    await killAll();
    await Promise.all(others.map((each) => each.remove()));
    others = [];
  });
  async function own(starting: Promise<TestPostgres>): Promise<TestPostgres> {
    others.push(await starting);
    return starting;
  }

  /** As a role that may do nothing special. */
  const urlOf = (postgres: TestPostgres) => postgres.url(database).replace('postgres@', 'shop@');
  const environment = () => ({ DATABASE_URL: urlOf(primary), BOOTSTRAP_API_KEY: 'a-key-for-the-tests-of-read-nodes' });

  async function startWith(urls: string[], env: Record<string, string> = {}): Promise<void> {
    const nodes = { DATABASE_READ_URLS: urls.join(','), READ_MAX_LAG_MS: '60000' };
    server = await startServer({ ...environment(), ...nodes, ...env });
  }
  /** Until each of them has answered. */
  async function start(nodes = [one, two], env: Record<string, string> = {}): Promise<void> {
    await startWith(nodes.map(urlOf), env);
    await readUntil(() => nodes.every(hasAnswered));
  }

  const lines = () => linesOf(server.output.stdout);
  const isAbout = (node: TestPostgres, name: unknown) => `${name}`.endsWith(`:${node.port}`);
  const said = (text: string, about: TestPostgres) =>
    lines().some(({ msg, why = '', node }) => `${msg} ${why}`.includes(text) && isAbout(about, node));
  const hasAnswered = (by: TestPostgres) => lines().some(({ status, node }) => status === 200 && isAbout(by, node));

  const create = (name: string) => rest(server, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });
  const names = async () => (await rest(server, '/v1/pets?limit=100')).json.map(({ name }: { name: string }) => name);

  async function readUntil(isTrue: () => boolean): Promise<void> {
    await eventually(async () => {
      expect((await rest(server, '/v1/pets')).status).toBe(200);
      return isTrue();
    });
  }

  /** Meanwhile they get nothing that is new. */
  async function whileBehind(nodes: TestPostgres[], work: () => Promise<unknown>): Promise<void> {
    await Promise.all(nodes.map((node) => node.set({ recovery_min_apply_delay: '1h' })));
    await work().finally(() => Promise.all(nodes.map((node) => node.set({ recovery_min_apply_delay: 0 }))));
  }
  const readsFromReplicas = () => {
    const before = server.output.stdout.length;
    return readUntil(() => /"node":"127/.test(server.output.stdout.slice(before)));
  };
  const addElsewhere = () =>
    primary.query(`insert into pet (name, category_id, status) values ('Rex', 5, 'sold')`, [], database);
  /** Each creation is found at once by who made it. @param more what else is asked after each */
  async function readOwn(count: number, more: () => Promise<unknown> = names): Promise<void> {
    for (let at = 0; at < count; at += 1) {
      const { id } = (await create(`Rex ${at}`)).json;
      expect((await rest(server, `/v1/pets/${id}`)).json).toMatchObject({ name: `Rex ${at}` });
      await more();
    }
  }

  test('a client reads at once what it has written, though the replicas do not have it', async () => {
    await start();
    let count = 0;
    const lists = async () => expect(await names()).toHaveLength(++count);
    await whileBehind([one, two], () => readOwn(20, lists));
    await readsFromReplicas();
    expect(await names()).toHaveLength(20);
  });

  test('a replica that falls too far behind is not used until it has caught up, and the log says so', async () => {
    await start([one], { READ_MAX_LAG_MS: '1000' });
    await whileBehind([one], async () => {
      await addElsewhere();
      await readUntil(() => said('too far behind', one));
      expect(await names()).toEqual(['Rex']);
    });
    await readsFromReplicas();
  });

  test('a replica that falls silent delays no request, one that is killed costs none, and both are used again', async () => {
    await start();
    await create('Rex');
    let isOver = false;
    const readers = Array.from({ length: 8 }, async () => {
      while (!isOver) expect(await names()).toEqual(['Rex']);
    });
    const areUsed = (count: number) =>
      readUntil(() => lines().filter(({ msg }) => msg === 'a read node is used').length >= count);
    one.pause();
    await readUntil(() => said('is not used', one)).finally(() => one.resume());
    await areUsed(3);
    await two.kill();
    await readUntil(() => said('is not used', two));
    await two.start();
    await areUsed(4);
    isOver = true;
    await Promise.all(readers);
  });

  test('while this process writes nothing it reads from replicas that are behind, but not who may use it', async () => {
    await start();
    await whileBehind([one, two], async () => {
      await addElsewhere();
      await readsFromReplicas();
      const { stdout } = await cli(['keys', 'issue', '--name', 'new', '--json'], environment());
      expect((await rest(server, '/v1/pets', { key: JSON.parse(stdout).key })).status).toBe(200);
    });
  });

  test('a creation that had to be sent again, without the name of its statement, counts like any other', async () => {
    const env = { DATABASE_URL: urlOf(primary), DATABASE_READ_URLS: urlOf(one), DATABASE_POOL_MAX: '2' };
    const store = await startStore({ ...env, READ_MAX_LAG_MS: '60000' }, { database: { env, drop: async () => {} } });
    const add = (name: string) => rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });
    await Promise.all([add('Rex'), sql(store.database, 'select pg_sleep(0.1)')]);
    // The replica has it, and is in use.
    await eventually(async () => {
      let server = '';
      await store.database.read({ name: 'one', text: 'select 1' }, [], (name) => {
        server = name;
      });
      return server !== 'primary';
    });
    await whileBehind([one], async () => {
      await Promise.all([1, 2].map(() => sql(store.database, 'deallocate all')));
      const { id } = (await add('Bella')).json;
      expect((await rest(store, `/v1/pets/${id}`)).json).toMatchObject({ name: 'Bella' });
    });
    await store.close();
  });

  test('without a node that answers the primary does, and none keeps the service from starting or ending, with workers too', async () => {
    const hole = createServer().listen(0, '127.0.0.1');
    await once(hole, 'listening');
    const silent = (hole.address() as AddressInfo).port;
    for (const WORKERS of ['1', '2']) {
      await startWith(['postgres://shop@127.0.0.1:1/shop', `postgres://shop@127.0.0.1:${silent}/shop`], { WORKERS });
      await create('Rex');
      expect((await names()).length).toBe(Number(WORKERS));
      expect(await server.stop()).toMatchObject({ code: 0, stderr: '', stdout: expect.not.stringContaining('"err"') });
    }
    hole.close();
  });

  test('another database of a replica, a server that fails every read, and a replica that was promoted are left alone; the log says why, once in a while', async () => {
    await primary.query(`create database other_${count} template template0`);
    const foreign = await own(TestPostgres.startForeign());
    const three = await own(primary.replica('three'));
    await startWith([one.url(`other_${count}`), foreign.url(), urlOf(three)]);
    await readUntil(() => hasAnswered(three));
    await three.promote();
    await create('Rex');
    await three.query(`insert into pet (name, category_id, status) values ('not here', 5, 'sold')`, [], database);
    await readUntil(
      () =>
        said('it is another database', one) &&
        said('relation "pet" does not exist', foreign) &&
        said('it has been promoted', three),
    );
    for (let at = 0; at < 200; at += 1) expect(await names()).toEqual(['Rex']);
    expect(lines().filter(({ msg }) => /^a read node/.test(msg)).length).toBeLessThan(20);
  });

  test('sessions that hang, of a server that is well, delay no request', async () => {
    await start([one]);
    const reading = `select pid from pg_stat_activity where datname = '${database}' and application_name = 'animal-store'`;
    const pids = (await one.query<{ pid: number }>(reading)).map(({ pid }) => pid);
    expect(pids.length).toBeGreaterThan(0);
    const signal = (name: NodeJS.Signals) => pids.forEach((pid) => void process.kill(pid, name));
    signal('SIGSTOP');
    const isServed = async () => {
      expect((await rest(server, '/v1/pets')).status).toBe(200);
      await eventually(async () => said('has not answered a read', one));
    };
    await isServed().finally(() => signal('SIGCONT'));
  });

  test('an address with several replicas behind it is never stale to the writer', async () => {
    let turn = 0;
    const proxy = createServer((near) => {
      turn += 1;
      const far = connect((turn % 2 ? one : two).port, '127.0.0.1');
      near.pipe(far).pipe(near);
      near.on('error', () => far.destroy()).on('close', () => far.destroy());
      far.on('error', () => near.destroy());
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    await whileBehind([two], async () => {
      await startWith([`postgres://shop@127.0.0.1:${(proxy.address() as AddressInfo).port}/${database}`]);
      await readOwn(30, () => Promise.all(Array.from({ length: 4 }, names)));
    });
    proxy.close();
  });

  test('what a client has seen stays, although one replica is later than the other', async () => {
    await start();
    await one.set({ recovery_min_apply_delay: '150ms' });
    await two.set({ recovery_min_apply_delay: '400ms' });
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
    await Promise.all([one, two].map((each) => each.set({ recovery_min_apply_delay: 0 })));
  });

  test('after a creation with an unknown outcome the primary answers, though the replica is not far behind', async () => {
    await start([one]);
    const lost = `
      insert into pet (name, category_id, status) values ('Rex', 5, 'sold');
      create function lose() returns trigger language plpgsql as $$ begin raise sqlstate '40003'; end $$;
      create trigger lose before insert on pet execute function lose()`;
    await whileBehind([one], async () => {
      await primary.query(lost, [], database);
      expect(await create('Rex')).toMatchObject({ status: 503 });
      expect(await names()).toEqual(['Rex']);
    });
  });

  test('a creation that no server could take does not end the reading', async () => {
    const lonely = await own(TestPostgres.start());
    const replica = await own(lonely.replica('replica'));
    await lonely.query(`create database ${database}`);
    await startWith([replica.url(database)], { DATABASE_URL: lonely.url(database), READ_MAX_LAG_MS: '3600000' });
    await readUntil(() => hasAnswered(replica));
    await lonely.kill();
    // It has seen that its connections are gone: none will be given a creation whose outcome nobody knows.
    for (let at = 0; at < 3; at += 1) await rest(server, '/readyz');
    expect((await create('Rex')).json).toMatchObject({ message: expect.stringContaining('cannot be reached') });
    for (let at = 0; at < 10; at += 1) expect((await rest(server, '/v1/pets')).status).toBe(200);
  });

  test('after a failover a replica that has more of the old primary than the new one is not read', async () => {
    const old = await own(TestPostgres.start());
    const [next, ahead] = [await own(old.replica('next')), await own(old.replica('ahead'))];
    await old.query('create table noise (text text)');
    await next.stop();
    await old.query(`insert into noise select repeat('x', 100) from generate_series(1, 20000)`);
    await eventually(async () => (await ahead.query('select from noise')).length === 20000);
    await old.kill();
    await next.start();
    await next.promote();
    await startWith([ahead.url()], { DATABASE_URL: next.url() });
    await readOwn(20);
    await readUntil(() => said('it has not followed the last promotion', ahead));
  });
});
