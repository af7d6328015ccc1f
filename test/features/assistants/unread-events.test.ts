// runs: embedded

import { request } from 'node:http';
import { sql } from '../../support/database-access.ts';
import { expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { storeForAll } from '../../support/store.ts';
import { eventsRequest } from './mcp.ts';

const store = storeForAll({ MCP: 'true' });

test('a stream of events that is not read is in the share of its key, and is cut off', async () => {
  const names = `select lpad(n::text, 900, 'x'), 1, 'available' from generate_series(1, 15000) n`;
  await sql(
    store.database,
    `insert into pet (name, category_id, status) ${names}`,
  );
  const { url, body, ...options } = eventsRequest(store, {
    name: 'pets.added',
    cursor: '0',
  });
  let isEnded = false;
  const client = request(url, options, (response) => {
    response.once('close', () => {
      isEnded = true;
    });
    response.socket.pause();
  });
  client.end(body);
  const { subscriptions, unread } = store.app;
  try {
    // Beside 65,536 of its answer a page, while nothing is sent.
    let delivered = 0;
    let samples = 0;
    await eventually(async () => {
      const isHeld = subscriptions.delivered === delivered && delivered > 0;
      samples = isHeld && unread.budget.used > 150_000 ? samples + 1 : 0;
      delivered = subscriptions.delivered;
      return samples === 20;
    });
    // Other unread responses use up the 128 MiB.
    unread.budget.add('others', 128 * 1024 * 1024);
    await eventually(async () => subscriptions.count === 0);
    unread.budget.add('others', -128 * 1024 * 1024);
    expect(isEnded).toBe(false);
    expect(subscriptions.delivered).toBeLessThan(15_000);
  } finally {
    client.destroy();
  }
  await eventually(async () => unread.budget.used === 0);
});
