import { createSecret } from '../../src/access/keys/secret.ts';
import { statementsOf } from '../support/database-access.ts';
import { callWith, guess, judged, withClock } from '../support/guesses.ts';
import { describe, expect, test } from '../support/jest.ts';
import { onNode } from '../support/nodes.ts';
import { eventually } from '../support/process.ts';
import { storeForAll } from '../support/store.ts';
import { together } from '../support/together.ts';

/** Whoever shares an address with others cannot lock them out. */
const store = storeForAll();

const limited = { AUTH_FAILURES_PER_MINUTE: '5' };
const mistyped = (at: number) => `${createSecret().slice(0, -1)}${at % 2 ? '' : '-'}`;
const wrongShapes = ['x', 'wrong-key-of-somebody', 'sk_live_0123456789abcdef', mistyped(0), mistyped(1)];

describe('100 anonymous requests do not lock out a key that is in use behind the same address', () => {
  test.each<[string, (at: number) => string]>([
    ['of the wrong shape', () => 'x'],
    ['mistyped', mistyped],
    ['of the right shape, and wrong', () => createSecret()],
  ])('with keys %s', async (_what, wrong) => {
    await onNode(store, { AUTH_FAILURES_PER_MINUTE: '100' }, async (node) => {
      await withClock(async (setTo) => {
        const inUse = async (expected: string[]) => {
          const call = async () => expect((await callWith(node, store.key)).status).toBe(200);
          expect(await statementsOf(store.database, call)).toEqual(expected);
        };
        const list = expect.stringContaining('list_') as unknown as string;
        await inUse(['select_keys', list]);
        for (let at = 0; at < 100; at += 1) expect((await callWith(node, wrong(at))).status).toBe(401);
        await inUse([list]);
        // Its look-up is too old to be believed: there is another one, whatever the others did.
        for (const later of [901, 1802, 30_000]) {
          setTo(later);
          await inUse(['select_keys', list]);
        }
      });
    });
  });
});

describe('keys of the wrong shape', () => {
  test('cost no look-up, are not counted, and are 401 however many they are, over the limit too', async () => {
    await onNode(store, limited, async (node) => {
      const tryAll = async () => {
        for (let at = 0; at < 50; at += 1) {
          expect((await callWith(node, wrongShapes[at % wrongShapes.length] as string)).status).toBe(401);
        }
      };
      expect(await statementsOf(store.database, tryAll)).toEqual([]);
      expect(await guess(node, 7)).toEqual(judged(5, 7));
      expect(await statementsOf(store.database, tryAll)).toEqual([]);
    });
  });
});

describe('a wrong key that is repeated', () => {
  test('is looked up once in ten seconds, and counted once', async () => {
    await onNode(store, limited, async (node) => {
      await withClock(async (setTo) => {
        const wrong = createSecret();
        const repeat = () =>
          statementsOf(store.database, async () => {
            for (let at = 0; at < 20; at += 1) expect((await callWith(node, wrong)).status).toBe(401);
          });
        expect(await repeat()).toEqual(['select_keys']);
        setTo(9999);
        expect(await repeat()).toEqual([]);
        setTo(10_001);
        expect(await repeat()).toEqual(['select_keys']);
        expect(await guess(node, 4)).toEqual(judged(3, 4));
        expect(await repeat()).toEqual([]);
      });
    });
  });

  test('is counted once, too, when all come at the same time', async () => {
    await onNode(store, limited, async (node) => {
      const wrong = createSecret();
      const answers = await together(node, store.database, 50, () => callWith(node, wrong));
      expect(answers.map(({ status }) => status)).toEqual(judged(50, 50));
      expect(await guess(node, 5)).toEqual(judged(4, 5));
    });
  });

  test('because it was revoked does not lock out others, not even those that were never seen', async () => {
    const revoked = await store.keys.issue({ name: 'revoked' });
    const other = await store.keys.issue({ name: 'other' });
    await onNode(store, limited, async (node) => {
      expect((await callWith(node, revoked.key)).status).toBe(200);
      await store.keys.revoke(revoked.id);
      await eventually(async () => (await callWith(node, revoked.key)).status === 401);
      await withClock(async (setTo) => {
        // Its client goes on, with a few connections, and whatever was remembered of the key is forgotten meanwhile.
        for (const later of [0, 15_000, 30_000]) {
          setTo(later);
          const answers = await together(node, store.database, 20, () => callWith(node, revoked.key));
          expect(answers.map(({ status }) => status)).toEqual(judged(20, 20));
        }
        expect((await callWith(node, other.key)).status).toBe(200);
      });
    });
  });
});

describe('wrong keys that come all at once', () => {
  test('are looked up together, in a few statements, and every later one is refused', async () => {
    await onNode(store, { AUTH_FAILURES_PER_MINUTE: '20' }, async (node) => {
      const statements = await statementsOf(store.database, async () => {
        const answers = await together(node, store.database, 300, () => callWith(node, createSecret()));
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
      });
      expect(statements.filter((name) => name === 'select_keys').length).toBeLessThan(10);
      expect(await guess(node, 20)).toEqual(judged(0, 20));
    });
  });

  test('good ones that have not been seen yet are all let in', async () => {
    const keys = await Promise.all(Array.from({ length: 30 }, (_, at) => store.keys.issue({ name: `key ${at}` })));
    await onNode(store, { AUTH_FAILURES_PER_MINUTE: '20' }, async (node) => {
      const answers = await Promise.all(keys.map(({ key }) => callWith(node, key)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    });
  });
});
