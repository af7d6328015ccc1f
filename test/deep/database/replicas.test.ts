import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { sql } from '../../support/database-access.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { bringsServers, cli, eventually, type ServerProcess, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { hasPostgres, TestPostgres } from '../../support/servers/postgres.ts';
import { startStore } from '../../support/store.ts';

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
  afterEach(() => server?.stop());

  /** As a role that may do nothing special. */
  const urlOf = (postgres: TestPostgres) => postgres.url(database).replace('postgres@', 'shop@');
  const environment = () => ({ DATABASE_URL: urlOf(primary), BOOTSTRAP_API_KEY: 'a-key-for-the-tests-of-read-nodes' });

  function start(nodes = [one, two], env: Record<string, string> = {}): Promise<void> {
    return startWith(nodes.map(urlOf), env);
  }

  async function startWith(urls: string[], env: Record<string, string> = {}): Promise<void> {
    server = await startServer({
      ...environment(),
      DATABASE_READ_URLS: urls.join(','),
      READ_MAX_LAG_MS: '60000',
      ...env,
    });
  }

  const lines = () =>
    server.output.stdout
      .split('\n')
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line));
  const said = (text: string, node: TestPostgres) =>
    lines().some(
      ({ msg, why = '', node: name }) => `${msg} ${why}`.includes(text) && `${name}`.endsWith(`:${node.port}`),
    );
  const hasAnswered = (node: TestPostgres) =>
    lines().some(({ status, node: name }) => status === 200 && `${name}`.endsWith(`:${node.port}`));

  const create = (name: string) => rest(server, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });
  const names = async () => (await rest(server, '/v1/pets?limit=100')).json.map(({ name }: { name: string }) => name);

  async function readUntil(isTrue: () => boolean): Promise<void> {
    await eventually(async () => {
      expect((await rest(server, '/v1/pets')).status).toBe(200);
      return isTrue();
    });
  }

  test('all of them answer, the log says which, and the primary is left alone', async () => {
    await start();
    await create('Rex');
    await readUntil(() => hasAnswered(one) && hasAnswered(two));
    expect(await names()).toEqual(['Rex']);
  });

  test('a client reads at once what it has written, though the replicas do not have it', async () => {
    await start();
    await readUntil(() => hasAnswered(one));
    await Promise.all([one, two].map((each) => each.set({ recovery_min_apply_delay: '1h' })));
    for (let at = 0; at < 20; at += 1) {
      const { id } = (await create(`Rex ${at}`)).json;
      expect((await rest(server, `/v1/pets/${id}`)).json).toMatchObject({ name: `Rex ${at}` });
      expect(await names()).toHaveLength(at + 1);
    }
    await Promise.all([one, two].map((each) => each.set({ recovery_min_apply_delay: 0 })));
    const before = server.output.stdout.length;
    await readUntil(() => /"node":"127/.test(server.output.stdout.slice(before)));
    expect(await names()).toHaveLength(20);
  });

  test('a replica that falls too far behind is not used until it has caught up, and the log says so', async () => {
    await start([one], { READ_MAX_LAG_MS: '1000' });
    await readUntil(() => hasAnswered(one));
    await one.set({ recovery_min_apply_delay: '1h' });
    // By another process.
    await primary.query(`insert into pet (name, category_id, status) values ('Rex', 5, 'sold')`, [], database);
    await readUntil(() => said('too far behind', one));
    expect(await names()).toEqual(['Rex']);
    await one.set({ recovery_min_apply_delay: 0 });
    const before = server.output.stdout.length;
    await readUntil(() => /"node":"127/.test(server.output.stdout.slice(before)));
  });

  test('a replica that is killed costs no request, and is used again when it is back', async () => {
    await start();
    await create('Rex');
    await readUntil(() => hasAnswered(one) && hasAnswered(two));
    let isOver = false;
    const readers = Array.from({ length: 8 }, async () => {
      while (!isOver) expect((await rest(server, '/v1/pets')).json).toMatchObject([{ name: 'Rex' }]);
    });
    await one.kill();
    await readUntil(() => said('is not used', one));
    await one.start();
    await readUntil(() => lines().filter(({ msg }) => msg === 'a read node is used').length >= 3);
    isOver = true;
    await Promise.all(readers);
  });

  test('a replica that falls silent delays no request', async () => {
    await start();
    await readUntil(() => hasAnswered(one) && hasAnswered(two));
    let isOver = false;
    const readers = Array.from({ length: 8 }, async () => {
      while (!isOver) expect((await rest(server, '/v1/pets')).status).toBe(200);
    });
    one.pause();
    try {
      await readUntil(() => said('is not used', one));
    } finally {
      one.resume();
    }
    isOver = true;
    await Promise.all(readers);
  });

  test('a key that was issued a moment ago is accepted, though the replicas do not know it', async () => {
    await start();
    await readUntil(() => hasAnswered(one) && hasAnswered(two));
    await Promise.all([one, two].map((each) => each.set({ recovery_min_apply_delay: '1h' })));
    const { stdout } = await cli(['keys', 'issue', '--name', 'new', '--json'], environment());
    expect((await rest(server, '/v1/pets', { key: JSON.parse(stdout).key })).status).toBe(200);
    await Promise.all([one, two].map((each) => each.set({ recovery_min_apply_delay: 0 })));
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
    await one.set({ recovery_min_apply_delay: '1h' });
    try {
      await Promise.all([1, 2].map(() => sql(store.database, 'deallocate all')));
      const { id } = (await add('Bella')).json;
      expect((await rest(store, `/v1/pets/${id}`)).json).toMatchObject({ name: 'Bella' });
    } finally {
      await one.set({ recovery_min_apply_delay: 0 });
      await store.close();
    }
  });

  test('without a node that is up the primary answers', async () => {
    await startWith(['postgres://shop@127.0.0.1:1/shop']);
    await create('Rex');
    expect(await names()).toEqual(['Rex']);
    expect(server.output.stdout).not.toContain('"err"');
  });

  test('a node that never says a word keeps the service neither from starting nor from ending, with workers too', async () => {
    const hole = createServer().listen(0, '127.0.0.1');
    await once(hole, 'listening');
    const url = `postgres://shop@127.0.0.1:${(hole.address() as AddressInfo).port}/shop`;
    for (const WORKERS of ['1', '2']) {
      await startWith([url], { WORKERS });
      expect((await rest(server, '/v1/pets')).status).toBe(200);
      expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
    }
    hole.close();
  });

  test('another database of a replica is not read', async () => {
    await primary.query(`create database other_${count} template template0`);
    await startWith([one.url(`other_${count}`)]);
    await create('Rex');
    await readUntil(() => said('it is another database', one));
    expect(await names()).toEqual(['Rex']);
  });

  test('a server that fails every read is left alone, and the log says why, once in a while', async () => {
    const foreign = await TestPostgres.startForeign();
    try {
      await startWith([foreign.url()]);
      await readUntil(() => said('relation "pet" does not exist', foreign));
      for (let at = 0; at < 200; at += 1) expect((await rest(server, '/v1/pets')).status).toBe(200);
      expect(lines().filter(({ msg }) => /^a read node/.test(msg)).length).toBeLessThan(20);
    } finally {
      await foreign.remove();
    }
  });

  test('sessions that hang, of a server that is well, delay no request', async () => {
    await start([one]);
    await readUntil(() => hasAnswered(one));
    const reading = `select pid from pg_stat_activity where datname = '${database}' and application_name = 'animal-store'`;
    const pids = (await one.query<{ pid: number }>(reading)).map(({ pid }) => pid);
    expect(pids.length).toBeGreaterThan(0);
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    try {
      expect((await rest(server, '/v1/pets')).status).toBe(200);
      await eventually(async () => said('has not answered a read', one));
    } finally {
      for (const pid of pids) process.kill(pid, 'SIGCONT');
    }
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
    await two.set({ recovery_min_apply_delay: '1h' });
    await startWith([`postgres://shop@127.0.0.1:${(proxy.address() as AddressInfo).port}/${database}`]);
    for (let at = 0; at < 30; at += 1) {
      const { id } = (await create(`Rex ${at}`)).json;
      expect((await rest(server, `/v1/pets/${id}`)).json).toMatchObject({ name: `Rex ${at}` });
      await Promise.all(Array.from({ length: 4 }, names));
    }
    await two.set({ recovery_min_apply_delay: 0 });
    proxy.close();
  });

  test('a process that writes nothing reads from a replica that is behind, but not too far', async () => {
    await start([one]);
    await readUntil(() => hasAnswered(one));
    await one.set({ recovery_min_apply_delay: '1h' });
    await primary.query(`insert into pet (name, category_id, status) values ('Rex', 5, 'sold')`, [], database);
    const before = server.output.stdout.length;
    await readUntil(() => /"node":"127/.test(server.output.stdout.slice(before)));
    await one.set({ recovery_min_apply_delay: 0 });
  });

  test('what a client has seen stays, although one replica is later than the other', async () => {
    await start();
    await readUntil(() => hasAnswered(one) && hasAnswered(two));
    await one.set({ recovery_min_apply_delay: '150ms' });
    await two.set({ recovery_min_apply_delay: '400ms' });
    let isOver = false;
    const writing = (async () => {
      while (!isOver) {
        // By another process.
        await primary.query(`insert into pet (name, category_id, status) values ('Rex', 5, 'sold')`, [], database);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    let seen = 0;
    for (let at = 0; at < 300; at += 1) {
      const { length } = await names();
      expect(length).toBeGreaterThanOrEqual(Math.min(seen, 100));
      seen = length;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(seen).toBeGreaterThan(10);
    isOver = true;
    await writing;
    await Promise.all([one, two].map((each) => each.set({ recovery_min_apply_delay: 0 })));
  });

  test('after a creation with an unknown outcome the primary answers, though the replica is not far behind', async () => {
    await start([one]);
    await readUntil(() => hasAnswered(one));
    await one.set({ recovery_min_apply_delay: '1h' });
    const lost = `
      insert into pet (name, category_id, status) values ('Rex', 5, 'sold');
      create function lose() returns trigger language plpgsql as $$ begin raise sqlstate '40003'; end $$;
      create trigger lose before insert on pet execute function lose()`;
    await primary.query(lost, [], database);
    expect(await create('Rex')).toMatchObject({ status: 503 });
    expect(await names()).toEqual(['Rex']);
    await one.set({ recovery_min_apply_delay: 0 });
  });

  test('a creation that no server could take does not end the reading', async () => {
    const lonely = await TestPostgres.start();
    const replica = await lonely.replica('replica');
    try {
      await lonely.query(`create database ${database}`);
      await startWith([replica.url(database)], { DATABASE_URL: lonely.url(database), READ_MAX_LAG_MS: '3600000' });
      await readUntil(() => hasAnswered(replica));
      await lonely.kill();
      // It has seen that its connections are gone: none will be given a creation whose outcome nobody knows.
      for (let at = 0; at < 3; at += 1) await rest(server, '/readyz');
      expect((await create('Rex')).json).toMatchObject({ message: expect.stringContaining('cannot be reached') });
      for (let at = 0; at < 10; at += 1) expect((await rest(server, '/v1/pets')).status).toBe(200);
    } finally {
      await lonely.remove();
      await replica.remove();
    }
  });

  test('after a failover a replica that has more of the old primary than the new one is not read', async () => {
    const old = await TestPostgres.start();
    const [next, ahead] = [await old.replica('next'), await old.replica('ahead')];
    try {
      await old.query('create table noise (text text)');
      await next.stop();
      await old.query(`insert into noise select repeat('x', 100) from generate_series(1, 20000)`);
      await eventually(async () => (await ahead.query('select from noise')).length === 20000);
      await old.kill();
      await next.start();
      await next.promote();
      await startWith([ahead.url()], { DATABASE_URL: next.url() });
      for (let at = 0; at < 20; at += 1) {
        const { id } = (await create(`Rex ${at}`)).json;
        expect((await rest(server, `/v1/pets/${id}`)).json).toMatchObject({ name: `Rex ${at}` });
      }
      await readUntil(() => said('it has not followed the last promotion', ahead));
    } finally {
      await Promise.all([old, next, ahead].map((each) => each.remove()));
    }
  });

  test('a replica that was promoted is not used any more', async () => {
    const three = await primary.replica('three');
    try {
      await start([three]);
      await readUntil(() => hasAnswered(three));
      await three.promote();
      await create('Rex');
      await three.query(`insert into pet (name, category_id, status) values ('not here', 5, 'sold')`, [], database);
      await readUntil(() => said('it has been promoted', three));
      expect(await names()).toEqual(['Rex']);
    } finally {
      await three.remove();
    }
  });
});
