import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Container, canContain } from '../../support/container.ts';
import { send } from '../../support/http.ts';
import { afterEach, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { type Env, eventually, freePort, killAll, runFile } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

const key = 'a-key-for-these-tests-and-no-others';
const inContainer = canContain ? test : test.skip;

describe('as in a container', () => {
  let container: Container;
  beforeEach(async () => {
    container = await Container.create();
  });
  afterEach(async () => {
    await killAll();
    container.remove();
  });

  inContainer(
    'the service runs as process 1 with the packages for production, and ends when it is told to (skipped without root)',
    async () => {
      const [port, operations] = [await freePort(), await freePort()];
      // Loopback, because the network is not the container's own.
      const hosts = { HOST: '127.0.0.1', OPERATIONS_HOST: '127.0.0.1', DRAIN_DELAY_MS: '0' };
      const ports = { PORT: `${port}`, OPERATIONS_PORT: `${operations}` };
      const service = container.run(['node', 'dist/src/main.js'], { ...hosts, ...ports, BOOTSTRAP_API_KEY: key });
      const origin = `http://127.0.0.1:${port}`;
      await eventually(async () => {
        if (service.child.exitCode !== null) return true;
        return (await send(origin, { path: '/readyz' })).status === 200;
      });
      expect(service.output.stderr).toBe('');
      const json = { name: 'Rex', categoryId: 5 };
      expect((await rest({ origin, key }, '/v1/pets', { method: 'POST', json })).status).toBe(201);
      expect((await send(`http://127.0.0.1:${operations}`, { path: '/metrics' })).status).toBe(200);
      expect(readdirSync(container.data)).not.toEqual([]);

      process.kill(Container.processOf(service), 'SIGTERM');
      expect(await service.ended).toMatchObject({ code: 0, stderr: '' });
    },
  );

  inContainer('the operator’s commands work in it (skipped without root)', async () => {
    const cli = (line: string, env = {}) =>
      container.run(['bin/animal-store.js', ...line.split(' '), '--json'], env).ended;
    const isDone = { code: 0, stdout: expect.stringMatching(/^\{.*\}\n$/), stderr: '' };
    expect(await cli('keys issue --name shop')).toMatchObject(isDone);
    expect(await cli('backup /data/store.sql')).toMatchObject(isDone);
    const restored = await cli('restore /data/store.sql', { DATA_DIR: '/data/restored' });
    expect(restored).toMatchObject(isDone);
    expect(JSON.parse(restored.stdout).tables).toContainEqual(expect.objectContaining({ table: 'api_key', rows: 1 }));
  });
});

describe('the health check of the image', () => {
  let server: Server;
  afterEach(async () => {
    await killAll();
    server.close();
  });

  /** Something that lives at this address alone. @returns its port */
  async function listenOn(host: string): Promise<string> {
    server = createServer(({ url }, answer) => answer.writeHead(url === '/livez' ? 200 : 404).end());
    await once(server.listen(0, host), 'listening');
    return `${(server.address() as AddressInfo).port}`;
  }

  const check = async (HOST: string, PORT: string, more: Env = {}) => {
    const { code, stderr } = await runFile('operations/healthcheck.mjs', [], { HOST, PORT, ...more }).ended;
    return { code, stderr };
  };

  test.each(['127.0.0.1', '0.0.0.0'])(
    'with HOST=%s says 0 where the service lives, and 1 where nothing does',
    async (host) => {
      const port = await listenOn('127.0.0.1');
      expect(await check(host, port)).toEqual({ code: 0, stderr: '' });
      // The port for operators, where there is one.
      const operations = { OPERATIONS_HOST: host, OPERATIONS_PORT: port };
      expect(await check('127.0.0.1', '9', operations)).toEqual({ code: 0, stderr: '' });
      server.close();
      expect(await check(host, port)).toEqual({ code: 1, stderr: '' });
    },
  );

  test('asks at the one address where the service listens, not on loopback', async () => {
    const port = await listenOn('127.0.0.2');
    expect(await check('127.0.0.1', port)).toEqual({ code: 1, stderr: '' });
    expect(await check('127.0.0.2', port)).toEqual({ code: 0, stderr: '' });
  });
});
