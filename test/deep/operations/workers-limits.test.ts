import { Agent, request } from 'node:http';
import { databaseForEach } from '../../support/each.ts';
import { expect, test } from '../../support/jest.ts';
import { exchange, requestText } from '../../support/raw.ts';
import { allUp, startWorkers, type WorkersProcess } from '../../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach();

/** A request on a connection of its own, which goes to the next worker. */
async function statusWith(server: WorkersProcess, secret: string): Promise<number> {
  const [answer] = await exchange(server, requestText('GET /v1/pets', `Authorization: Bearer ${secret}\r\n`));
  return answer?.status ?? 0;
}

let guesses = 0;
const guess = () => `one-more-guess-at-the-bootstrap-key-${++guesses}`;

test('wrong keys are counted over all workers, also those of a worker that has died', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key, AUTH_FAILURES_PER_MINUTE: '9' });
  for (let time = 1; time <= 6; time += 1) expect(await statusWith(server, guess())).toBe(401);
  process.kill(server.pids()[0] as number, 'SIGKILL');
  await allUp(server);
  for (let time = 1; time <= 3; time += 1) expect(await statusWith(server, guess())).toBe(401);
  for (let time = 1; time <= 6; time += 1) expect(await statusWith(server, guess())).toBe(429);
});

test('one wrong key that comes to all workers counts once', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key, AUTH_FAILURES_PER_MINUTE: '3' });
  const wrong = guess();
  for (let time = 1; time <= 6; time += 1) expect(await statusWith(server, wrong)).toBe(401);
  for (let time = 1; time <= 2; time += 1) expect(await statusWith(server, guess())).toBe(401);
  for (let time = 1; time <= 3; time += 1) expect(await statusWith(server, guess())).toBe(429);
});

test('after many wrong keys at once, every later one is refused', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key, AUTH_FAILURES_PER_MINUTE: '9' });
  const statuses = await Promise.all(Array.from({ length: 60 }, () => statusWith(server, guess())));
  const wrong = statuses.filter((status) => status === 401).length;
  expect(statuses.filter((status) => status === 429)).toHaveLength(60 - wrong);
  expect(wrong).toBeGreaterThanOrEqual(9);
  for (let time = 1; time <= 6; time += 1) expect(await statusWith(server, guess())).toBe(429);
});

test('a quota without Redis is counted over all workers', async () => {
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key, QUOTA_PER_MINUTE: '9' });
  for (let time = 1; time <= 9; time += 1) expect(await statusWith(server, key)).toBe(200);
  for (let time = 1; time <= 6; time += 1) expect(await statusWith(server, key)).toBe(429);
});

test('while the parent does not answer each worker counts for itself, and no request waits for it', async () => {
  const env = { ...database.env, BOOTSTRAP_API_KEY: key, QUOTA_PER_MINUTE: '1000' };
  const server = await startWorkers(env, 2);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const status = (secret: string) =>
    new Promise<number | undefined>((done, fail) => {
      const headers = { authorization: `Bearer ${secret}` };
      request(`${server.origin}/v1/pets`, { agent, headers }, (incoming) => {
        incoming.resume().on('end', () => done(incoming.statusCode));
      })
        .on('error', fail)
        .end();
    });
  expect(await status(key)).toBe(200);
  server.child.kill('SIGSTOP');
  expect([await status(key), await status(guess()), await status(key)]).toEqual([200, 401, 200]);
  server.child.kill('SIGCONT');
  expect([await status(key), await status(guess())]).toEqual([200, 401]);
  agent.destroy();
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});
