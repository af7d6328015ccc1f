// runs: embedded, postgres, pgbouncer, citus-shards, citus-reference

import { randomUUID } from 'node:crypto';
import { creators } from '../../support/apis.ts';
import { sql } from '../../support/database-access.ts';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import { onNode, storeForAll } from '../../support/store.ts';

const store = storeForAll();
let once: string;
beforeEach(async () => {
  once = randomUUID();
  await store.empty();
  await sql(store.database, 'delete from idempotency_key');
});

const rex = { name: 'Rex', categoryId: 5 };
const pairs = creators.flatMap((first) =>
  creators.map((second) => ({ first, second })),
);

describe.each(pairs)(
  'created through $first.name and sent again through $second.name',
  ({ first, second }) => {
    test('a creation beyond the quota leaves the key free', async () => {
      await onNode(store, { QUOTA_PER_MINUTE: '2' }, async (node) => {
        await first.create(node, rex);
        expect((await first.create(node, rex, { once })).outcome).toMatchObject(
          { status: 429 },
        );
      });
      const bello = { ...rex, name: 'Bello' };
      expect(await second.create(store, bello, { once })).toMatchObject({
        outcome: { name: 'Bello' },
        replayed: undefined,
      });
    });

    test('a replay is charged like a creation, and a refused reuse like any refusal', async () => {
      await onNode(store, { QUOTA_PER_MINUTE: '6' }, async (node) => {
        await first.create(node, rex, { once });
        for (const _ of [1, 2]) {
          expect(
            (await second.create(node, { ...rex, name: 'Bello' }, { once }))
              .outcome,
          ).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
        }
        expect(await second.create(node, rex, { once })).toMatchObject({
          replayed: 'true',
        });
        expect(
          (await second.create(node, rex, { once })).outcome,
        ).toMatchObject({ status: 429 });
      });
    });
  },
);
