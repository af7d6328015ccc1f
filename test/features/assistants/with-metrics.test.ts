// runs: embedded, postgres

import { expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { storeForAll } from '../../support/store.ts';
import { measuring } from '../metrics/measured.ts';
import { openEvents } from './mcp.ts';

const { parts, series } = measuring();
const store = storeForAll({ MCP: 'true' }, undefined, { parts });
const routed =
  'http_request_method="POST",http_route="/mcp",http_response_status_code';

test('a stream of events that its client ends is answered, with the time to its start', async () => {
  const client = new AbortController();
  const asked = performance.now();
  const next = await openEvents(store, { name: 'pets.added' }, client.signal);
  await next();
  const seconds = (performance.now() - asked) / 1000;
  client.abort();
  const name = `http_server_request_duration_seconds_count{${routed}="200"}`;
  await eventually(async () => (await series()).get(name) === 1);
  const counted = await series();
  expect(counted.get('http_server_aborted_requests_total')).toBe(0);
  const sum = `http_server_request_duration_seconds_sum{${routed}="200"}`;
  expect(counted.get(sum)).toBeLessThan(seconds);
});
