import { createTestDatabase } from '../../support/database.ts';
import { databaseForEach } from '../../support/each.ts';
import { graphqlText } from '../../support/graphql.ts';
import { send } from '../../support/http.ts';
import { expect, test } from '../../support/jest.ts';
import { type MeasuredServer, openTelemetry, startMeasured } from '../../support/metrics.ts';
import { exchange, requestText } from '../../support/raw.ts';

const key = 'a-key-for-these-tests-and-no-others';
const database = databaseForEach(createTestDatabase);

/** What no metric may repeat. */
const mark = 'h0stile';

/** The same kinds of requests, each time in other words. */
async function ask(server: MeasuredServer, word: string): Promise<void> {
  const authorization = `Authorization: Bearer ${key}\r\n`;
  const get = (path: string, headers = authorization) => exchange(server, requestText(`GET ${path}`, headers));
  await get(`/${word}`);
  await get(`/v1/pets/${word}`);
  await get(`/v1/pets/${word}/${word}`);
  await get(`/v1/pets?${word}=${word}&status=${word}`);
  await get(`/docs/${word}`);
  await get(`/v1/pets`, `Authorization: Bearer ${word}\r\n`);
  await get(`/v1/pets`, `Authorization: Bearer ask_${word.padEnd(48, '0')}\r\n`);
  await get(`/livez`, `${authorization}X-Request-Id: ${word}\r\nTraceparent: ${word}\r\nUser-Agent: ${word}\r\n`);
  await get(`/%zz${word}`);
  for (const method of ['REPORT', 'PROPFIND', 'PURGE', 'DELETE', word.toUpperCase()]) {
    await exchange(server, requestText(`${method} /v1/pets`, authorization));
  }
  await graphqlText(server, { query: `query ${word} { ${word}: pets { ${word}: id } }`, operationName: word });
  await graphqlText(server, { query: `{ ${word} }` });
  await graphqlText(server, { query: `{ pets { id } } fragment ${word} on Pet { id }` });
  await graphqlText(server, { query: `query ${word} { pets { id } }`, operationName: `${word}${word}` });
  await graphqlText(server, { query: `mutation ($${word}: NewPet!) { createPet(input: $${word}) { id } }` });
  await graphqlText(server, { query: `{ __type(name: "${word}") { name } }`, extensions: { [word]: word } });
}

test('nothing that a client sends becomes a label, and no client makes series', async () => {
  const server = await startMeasured({ ...database.env, BOOTSTRAP_API_KEY: key });
  // Once for each kind of answer that there is.
  await ask(server, 'warmup');
  await ask(server, 'warmup2');
  const before = [...(await server.metrics()).keys()].sort();
  for (let time = 0; time < 10; time += 1) await ask(server, `${mark}${time}`);
  const { text } = await send(server.operations, { path: '/metrics' });
  expect(text.toLowerCase()).not.toContain(mark);
  expect(text).not.toContain('warmup');
  expect([...(await server.metrics()).keys()].sort()).toEqual(before);
});

test('of more than 200 keys that call what is deprecated, the others share a series', async () => {
  const { metrics, observers } = await openTelemetry();
  for (let number = 0; number < 300; number += 1) observers.keys?.deprecatedCall('getPet', `key ${number}`);
  const report = (await metrics?.registry.getMetricsAsJSON()) ?? [];
  const values = report.find(({ name }) => name === 'animal_store_deprecated_calls_total')?.values ?? [];
  expect(values).toHaveLength(201);
  expect(values.find(({ labels }) => labels.key === 'other')?.value).toBe(100);
});
