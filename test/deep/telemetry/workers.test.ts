import { databaseForEach } from '../../support/each.ts';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { seriesIn } from '../../support/metrics.ts';
import { eventually, freePort } from '../../support/process.ts';
import { exchange, requestText } from '../../support/raw.ts';
import { allUp, startWorkers, type WorkersProcess } from '../../support/workers.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach();
const lists = 'animal_store_operations_total{face="rest",operation="listPets",code="OK"}';

/** On a connection each: they go to the workers in turn. */
async function list(server: WorkersProcess, times: number): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    await exchange(server, requestText('GET /v1/pets', `Authorization: Bearer ${key}\r\n`));
  }
}

test('the parent adds what its workers count; what has been counted stays when one hangs, and when one dies', async () => {
  const port = await freePort();
  const server = await startWorkers({ ...database.env, BOOTSTRAP_API_KEY: key, OPERATIONS_PORT: `${port}` }, 2);
  const metrics = async () => seriesIn((await send(`http://127.0.0.1:${port}`, { path: '/metrics' })).text);
  await list(server, 10);
  await eventually(async () => (await metrics()).get(lists) === 10);
  const series = await metrics();
  expect(series.get('animal_store_workers_up')).toBe(2);
  expect(series.get('animal_store_workers_silent')).toBe(0);
  expect(series.get('animal_store_database_up')).toBe(1);
  expect([...series.keys()].filter((name) => name.startsWith('animal_store_info'))).toHaveLength(1);

  const [victim] = server.pids() as [number];
  process.kill(victim, 'SIGSTOP');
  // One that is left like this would outlive the test. It keeps no scrape waiting.
  const isTold = eventually(async () => (await metrics()).get('animal_store_workers_silent') === 1);
  await isTold.finally(() => process.kill(victim, 'SIGCONT'));
  expect((await metrics()).get(lists)).toBe(10);
  await eventually(async () => (await metrics()).get('animal_store_workers_silent') === 0);
  expect((await metrics()).get(lists)).toBe(10);

  process.kill(victim, 'SIGKILL');
  await eventually(async () => server.pids().length === 3);
  await allUp(server);
  expect((await metrics()).get(lists)).toBe(10);
  await list(server, 4);
  await eventually(async () => (await metrics()).get(lists) === 14);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
});
