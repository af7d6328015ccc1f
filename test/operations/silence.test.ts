import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { graphqlText } from '../support/graphql.ts';
import { eventually, killAll, onPostgres, startServer } from '../support/process.ts';
import { rest } from '../support/rest.ts';

/** A network between the service and PostgreSQL that can lose everything without closing a connection. */
class Network {
  isLost = false;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor({ hostname, port }: URL) {
    this.#server = createServer((near) => {
      const far = connect(Number(port || 5432), hostname);
      this.#forward(near, far);
      this.#forward(far, near);
    });
  }

  async open(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #forward(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on('data', (bytes) => this.isLost || to.write(bytes));
    from.on('error', () => undefined).on('close', () => this.isLost || to.destroy());
  }
}

let database: TestDatabase;
let network: Network;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await killAll();
  network?.close();
  await database.drop();
});

(onPostgres ? test : test.skip)(
  'a PostgreSQL that falls silent is given up, and taken back when it answers (PostgreSQL only)',
  async () => {
    const url = new URL((database.env as { DATABASE_URL: string }).DATABASE_URL);
    network = new Network(url);
    url.port = `${await network.open()}`;
    const server = await startServer({
      DATABASE_URL: url.href,
      DATABASE_STATEMENT_TIMEOUT_MS: '500',
      DATABASE_CONNECT_TIMEOUT_MS: '1000',
      BOOTSTRAP_API_KEY: 'a-key-for-these-tests-only',
    });
    expect((await rest(server, '/v1/pets')).status).toBe(200);

    network.isLost = true;
    const [listed, found, created, asked] = await Promise.all([
      rest(server, '/v1/pets'),
      rest(server, '/v1/pets/1'),
      rest(server, '/v1/pets', { method: 'POST', json: { name: 'Rex', categoryId: 5 } }),
      graphqlText(server, { query: '{ pets { id } }' }),
    ]);
    for (const { status, json } of [listed, found, created]) {
      expect({ status, json }).toMatchObject({ status: 503, json: { code: 'SERVICE_UNAVAILABLE', status: 503 } });
    }
    expect(asked.errors).toMatchObject([{ extensions: { code: 'SERVICE_UNAVAILABLE', status: 503 } }]);

    network.isLost = false;
    await eventually(async () => (await rest(server, '/v1/pets')).status === 200);
  },
);
