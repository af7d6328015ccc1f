import fc from 'fast-check';
import { History } from '../../parity/history.ts';
import { operations } from '../../parity/operations.ts';
import { cases } from '../../support/cases.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * The parity prover: random histories, each call through a random face, against a model of the specification.
 * PROVER_RUNS (1000; a tenth in `npm test`) and PROVER_SEED (random) come from the environment; a failure prints the shortest history that
 * shows it, as a script.
 */
const runs = cases(1000, 'PROVER_RUNS');
const seed = Number(process.env.PROVER_SEED ?? Math.floor(Math.random() * 2 ** 31));

let keys: History['keys'];
const store = storeForAll({}, async () => {
  const { key: read } = await store.keys.issue({ name: 'read only', scope: 'read' });
  const { key: revoked, id } = await store.keys.issue({ name: 'revoked' });
  await store.keys.revoke(id);
  const unknown = `${store.key.slice(0, -1)}${store.key.endsWith('A') ? 'B' : 'A'}`;
  keys = { write: store.key, read, revoked, unknown, none: null };
});

test(`both faces and the model agree after each of ${runs} histories, PROVER_SEED=${seed}`, async () => {
  const calls = { REST: 0, GraphQL: 0, refused: 0 };
  const property = fc.asyncProperty(operations, fc.integer({ min: 1, max: 7 }), async (history, pageSize) => {
    await store.empty();
    const script = new History(store, keys, calls);
    try {
      for (const operation of history) await script.play(operation);
      await script.agree(pageSize);
    } catch (error) {
      throw new Error(`${(error as Error).message}\n\n${script}\n`, { cause: error });
    }
  });
  const result = await fc.check(property, { numRuns: runs, seed, endOnFailure: false });
  if (result.failed) {
    const { cause, message } = (result.errorInstance ?? {}) as Error;
    throw new Error(
      `PROVER_SEED=${seed}, after ${result.numRuns} histories and ${result.numShrinks} shrinks: ${message}`,
      { cause },
    );
  }
  console.log(`${runs} histories (seed ${seed}), calls: ${JSON.stringify(calls)}`);
  expect(result.numRuns).toBe(runs);
}, 600_000);
