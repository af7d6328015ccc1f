// runs: embedded, postgres, pgbouncer, citus-shards, citus-reference

import fc from 'fast-check';
import { History } from '../../parity/history.ts';
import { operations } from '../../parity/operations.ts';
import { cases, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * The parity prover: random histories, each call through a random API, against
 * a model of the specification. PROVER_RUNS (1000; a tenth in `npm test`) and
 * PROVER_SEED (random) come from the environment. A failure prints the shortest
 * history that causes it.
 */
const runs = cases(1000, 'PROVER_RUNS');
const seed = Number(
  process.env.PROVER_SEED ?? Math.floor(Math.random() * 2 ** 31),
);

let keys: History['keys'];
const store = storeForAll({}, async () => {
  const { key: read } = await store.keys.issue({
    name: 'read only',
    scope: 'read',
  });
  const { key: revoked, id } = await store.keys.issue({ name: 'revoked' });
  await store.keys.revoke(id);
  const unknown = `${store.key.slice(0, -1)}${store.key.endsWith('A') ? 'B' : 'A'}`;
  keys = { write: store.key, read, revoked, unknown, none: null };
});

test(`both APIs and the model agree after each of ${runs} histories, PROVER_SEED=${seed}`, async () => {
  const property = fc.asyncProperty(
    operations,
    fc.integer({ min: 1, max: 7 }),
    async (calls, pageSize) => {
      await store.empty();
      const history = new History(store, keys);
      await history.play(calls);
      await history.agree(pageSize);
    },
  );
  await fc.assert(property, { numRuns: runs, seed, endOnFailure: false });
}, 600_000);
