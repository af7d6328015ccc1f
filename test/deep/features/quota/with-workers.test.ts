import { databaseForEach } from '../../../support/fixtures.ts';
import { expect, test } from '../../../support/jest.ts';
import { bootstrapKey } from '../../../support/process.ts';
import { exchange, requestText } from '../../../support/raw.ts';
import { startWorkers } from '../workers/start.ts';

const database = databaseForEach();
const head = `Authorization: Bearer ${bootstrapKey}\r\n`;

test('a quota without Redis holds over all workers', async () => {
  const env = { ...database.env, QUOTA_PER_MINUTE: '9' };
  const server = await startWorkers(env);
  const statuses: unknown[] = [];
  // A request on a new connection goes to the next worker.
  for (let time = 1; time <= 15; time += 1) {
    const [answer] = await exchange(server, requestText('GET /v1/pets', head));
    statuses.push(answer?.status);
  }
  expect(statuses).toEqual([...Array(9).fill(200), ...Array(6).fill(429)]);
});
