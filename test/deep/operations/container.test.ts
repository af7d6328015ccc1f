import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { send } from '../../support/http.ts';
import { afterEach, expect, test } from '../../support/jest.ts';
import {
  type Env,
  eventually,
  freePort,
  bootstrapKey as key,
  killAll,
  runFile,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import {
  canContain,
  createContainer,
  processOf,
} from '../support/container.ts';

afterEach(killAll);

(canContain ? test : test.skip)(
  'in a container the service runs as process 1 with the packages for production and ends with 0 at SIGTERM, and the operator’s commands work (skipped without root)',
  async () => {
    const container = await createContainer();
    const [port, operations] = [await freePort(), await freePort()];
    // Loopback, because the network is not the container's own.
    const hosts = {
      HOST: '127.0.0.1',
      OPERATIONS_HOST: '127.0.0.1',
      DRAIN_DELAY_MS: '0',
    };
    const ports = { PORT: `${port}`, OPERATIONS_PORT: `${operations}` };
    const service = container.run(['node', 'dist/src/main.js'], {
      ...hosts,
      ...ports,
      BOOTSTRAP_API_KEY: key,
    });
    const origin = `http://127.0.0.1:${port}`;
    await eventually(async () => {
      if (service.child.exitCode !== null) return true;
      return (await send(origin, { path: '/readyz' })).status === 200;
    });
    expect(service.output.stderr).toBe('');
    const json = { name: 'Rex', categoryId: 5 };
    expect(
      (await rest({ origin, key }, '/v1/pets', { method: 'POST', json }))
        .status,
    ).toBe(201);
    expect(
      (await send(`http://127.0.0.1:${operations}`, { path: '/readyz' }))
        .status,
    ).toBe(200);
    expect(readdirSync(container.data)).not.toEqual([]);
    process.kill(processOf(service), 'SIGTERM');
    expect(await service.ended).toMatchObject({ code: 0, stderr: '' });

    const cli = (line: string, env = {}) =>
      container.run(['bin/animal-store.js', ...line.split(' '), '--json'], env)
        .ended;
    const isDone = {
      code: 0,
      stdout: expect.stringMatching(/^\{.*\}\n$/),
      stderr: '',
    };
    expect(await cli('migrate')).toMatchObject(isDone);
    expect(await cli('keys issue --name shop')).toMatchObject(isDone);
    container.remove();
  },
);

test('the health check of the image exits with 0 at an address where the service listens, and with 1 elsewhere', async () => {
  /** A healthy service that listens on this address only. */
  async function listenOn(host: string) {
    const server = createServer(({ url }, response) =>
      response.writeHead(url === '/livez' ? 200 : 404).end(),
    );
    await once(server.listen(0, host), 'listening');
    return { server, port: `${(server.address() as AddressInfo).port}` };
  }
  const check = async (HOST: string, PORT: string, more: Env = {}) => {
    const { code, stderr } = await runFile('operations/healthcheck.mjs', [], {
      HOST,
      PORT,
      ...more,
    }).ended;
    expect(stderr).toBe('');
    return code;
  };
  const [{ server, port }, other] = [
    await listenOn('127.0.0.1'),
    await listenOn('127.0.0.2'),
  ];
  for (const host of ['127.0.0.1', '0.0.0.0']) {
    expect(await check(host, port)).toBe(0);
    // The check prefers the port for operators.
    expect(
      await check('127.0.0.1', '9', {
        OPERATIONS_HOST: host,
        OPERATIONS_PORT: port,
      }),
    ).toBe(0);
    // The other service listens on 127.0.0.2 only.
    expect([
      await check(host, other.port),
      await check('127.0.0.2', other.port),
    ]).toEqual([1, 0]);
  }
  for (const one of [server, other.server]) one.close();
  for (const host of ['127.0.0.1', '0.0.0.0'])
    expect(await check(host, port)).toBe(1);
});
