import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { createOwnDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { allUp, linesOf, startWorkers, type WorkersProcess } from '../../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach(createOwnDatabase);

interface Made {
  name: string;
  status: number;
  /** Of the connection. */
  id: number;
}

interface Failed {
  name: string;
  id: number;
}

const ids = new WeakMap<object, number>();
let lastId = 0;

/** The connection's number, the same for all of its requests. */
function idOf(socket: object): number {
  const id = ids.get(socket) ?? ++lastId;
  ids.set(socket, id);
  return id;
}

/** One creation on one of the agent's connections. */
function create(server: WorkersProcess, agent: Agent, name: string): Promise<Made> {
  return new Promise((done, fail) => {
    let id = 0;
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const outgoing = request(`${server.origin}/v1/pets`, { agent, method: 'POST', headers }, (incoming) => {
      incoming.on('error', () => fail({ name, id } satisfies Failed)).resume();
      incoming.on('end', () => done({ name, id, status: incoming.statusCode ?? 0 }));
    });
    outgoing.on('socket', (socket) => {
      id = idOf(socket);
    });
    outgoing.on('error', () => fail({ name, id } satisfies Failed));
    outgoing.end(JSON.stringify({ name, categoryId: 5 }));
  });
}

async function namesIn(server: WorkersProcess): Promise<string[]> {
  const names: string[] = [];
  for (let after = ''; ; ) {
    const { json } = await rest({ ...server, key }, `/v1/pets?limit=100${after}`);
    names.push(...json.map(({ name }: { name: string }) => name));
    if (json.length < 100) return names;
    after = `&after=${json.at(-1).id}`;
  }
}

test('a worker that is killed under load costs only the requests that it had in hand', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key });
  const agent = new Agent({ keepAlive: true, maxSockets: 12 });
  const made: Made[] = [];
  const failed: Failed[] = [];
  let isOver = false;
  let number = 0;
  const client = async () => {
    while (!isOver) {
      await create(server, agent, `pet ${++number}`).then(
        (one) => made.push(one),
        (one) => failed.push(one),
      );
    }
  };
  const clients = Array.from({ length: 12 }, client);
  for (const victim of server.pids()) {
    const before = made.length;
    await eventually(async () => made.length > before + 100);
    process.kill(victim, 'SIGKILL');
    await eventually(async () =>
      linesOf(server.output.stdout).some(({ msg, workerPid }) => msg === 'worker died' && workerPid === victim),
    );
    await allUp(server);
  }
  isOver = true;
  await Promise.all(clients);
  agent.destroy();

  expect(new Set(made.map(({ status }) => status))).toEqual(new Set([201]));
  const kept = await namesIn(server);
  expect(new Set(kept).size).toBe(kept.length);
  const lost = made.filter(({ name }) => !kept.includes(name));
  expect(lost).toEqual([]);
  // Of a creation that was not acknowledged nobody knows: it is there, or it is not.
  const unknown = kept.filter((name) => !made.some((one) => one.name === name));
  expect(failed.map(({ name }) => name)).toEqual(expect.arrayContaining(unknown));
  // A connection fails once, and nothing comes from it after that: it was the dead worker's.
  const connections = failed.map(({ id }) => id);
  expect(new Set(connections).size).toBe(connections.length);
  expect(failed.length).toBeLessThanOrEqual(12 * 3);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});

test('a connection that a dead worker had not taken yet goes to another one', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key }, 2);
  const [victim] = server.pids() as [number];
  process.kill(victim, 'SIGSTOP');
  // Round robin: each second connection is the stopped worker's.
  const answers = Array.from({ length: 4 }, () => {
    return new Promise<string>((done, fail) => {
      const socket = connect(Number(new URL(server.origin).port), '127.0.0.1');
      let text = '';
      socket.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      socket.on('error', fail).on('close', () => done(text));
      socket.write('GET /livez HTTP/1.1\r\nHost: store.example\r\nConnection: close\r\n\r\n');
    });
  });
  await Promise.race(answers);
  process.kill(victim, 'SIGKILL');
  for (const answer of await Promise.all(answers)) expect(answer).toContain('HTTP/1.1 200');
  await allUp(server);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});
