import { observersFor } from '#engine/features/metrics/measure.js';
import { Metrics } from '#engine/features/metrics/metrics.js';
import { databaseForEach } from '../../../support/fixtures.ts';
import { graphqlText } from '../../../support/graphql.ts';
import { send } from '../../../support/http.ts';
import { expect, test } from '../../../support/jest.ts';
import { seriesIn, startMeasured } from '../../../support/metrics.ts';
import { bootstrapKey, type ServerProcess } from '../../../support/process.ts';
import { exchange, requestText } from '../../../support/raw.ts';

const database = databaseForEach();

const authorization = `Authorization: Bearer ${bootstrapKey}\r\n`;
/** A text of the client that no metric may contain. */
const mark = 'h0stile';

/**
 * Sends the same kinds of requests with another word in each place that a
 * client controls.
 */
async function sendWith(server: ServerProcess, word: string): Promise<void> {
  const get = (path: string, headers = authorization) =>
    exchange(server, requestText(`GET ${path}`, headers));
  await get(`/${word}`);
  await get(`/v1/pets/${word}`);
  await get(`/v1/pets/${word}/${word}`);
  await get(`/v1/pets?${word}=${word}&status=${word}`);
  await get(`/docs/${word}`);
  await get(`/v1/pets`, `Authorization: Bearer ${word}\r\n`);
  await get(
    `/v1/pets`,
    `Authorization: Bearer ask_${word.padEnd(48, '0')}\r\n`,
  );
  await get(
    `/livez`,
    `${authorization}X-Request-Id: ${word}\r\nTraceparent: ${word}\r\nUser-Agent: ${word}\r\n`,
  );
  await get(`/%zz${word}`);
  for (const method of [
    'REPORT',
    'PROPFIND',
    'PURGE',
    'DELETE',
    word.toUpperCase(),
  ]) {
    await exchange(server, requestText(`${method} /v1/pets`, authorization));
  }
  await graphqlText(server, {
    query: `query ${word} { ${word}: pets { ${word}: id } }`,
    operationName: word,
  });
  await graphqlText(server, { query: `{ ${word} }` });
  await graphqlText(server, {
    query: `{ pets { id } } fragment ${word} on Pet { id }`,
  });
  await graphqlText(server, {
    query: `query ${word} { pets { id } }`,
    operationName: `${word}${word}`,
  });
  await graphqlText(server, {
    query: `mutation ($${word}: NewPet!) { createPet(input: $${word}) { id } }`,
  });
  await graphqlText(server, {
    query: `{ __type(name: "${word}") { name } }`,
    extensions: { [word]: word },
  });
}

test('no text of a client becomes a label, and no client adds series', async () => {
  const server = await startMeasured(database.env);
  // Creates the series of each kind of response.
  await sendWith(server, 'warmup');
  await sendWith(server, 'warmup2');
  const before = [...(await server.metrics()).keys()].sort();
  for (let time = 0; time < 10; time += 1)
    await sendWith(server, `${mark}${time}`);
  const { text } = await send(server.operations, { path: '/metrics' });
  expect(text.toLowerCase()).not.toContain(mark);
  expect(text).not.toContain('warmup');
  expect([...(await server.metrics()).keys()].sort()).toEqual(before);
});

test('of the keys that call a deprecated operation, all beyond 200 share one series', async () => {
  const metrics = new Metrics('animal_store_');
  const { key } = observersFor(metrics);
  for (let number = 0; number < 300; number += 1)
    key.deprecatedCall('getPet', `key ${number}`);
  const series = seriesIn(await metrics.registry.metrics());
  const calls = 'animal_store_deprecated_calls_total{operation="getPet"';
  const counted = [...series].filter(([name]) => name.startsWith(calls));
  expect(counted).toHaveLength(201);
  expect(series.get(`${calls},key="other"}`)).toBe(100);
});
