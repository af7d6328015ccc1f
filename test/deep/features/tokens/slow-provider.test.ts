import { providerForAll } from '../../../features/tokens/provider.ts';
import { expect, test } from '../../../support/jest.ts';
import { onNode, storeForAll } from '../../../support/store.ts';
import { callWith } from '../../../support/wrong-keys.ts';

const provider = providerForAll();
const store = storeForAll();

test.each<[string, string]>([
  ['does not answer', ''],
  ['sends a byte every 100 ms', '{'],
])(
  'requests do not wait without an end for a provider that %s, and later ones do not wait for it',
  (_what, byte) =>
    onNode(store, provider.env, async (node) => {
      provider.instead = (response) => {
        const timer = setInterval(() => response.write(byte), 100);
        return response.on('close', () => clearInterval(timer));
      };
      const waiting = Array.from({ length: 50 }, (_, jti) =>
        callWith(node, provider.token({ jti: `${jti}` })),
      );
      expect((await callWith(node, store.key)).status).toBe(200);
      expect(
        new Set((await Promise.all(waiting)).map(({ status }) => status)),
      ).toEqual(new Set([503]));
      const before = provider.asked.length;
      expect(
        (await callWith(node, provider.token({ jti: 'later' }))).status,
      ).toBe(503);
      expect(provider.asked.length).toBe(before);
      provider.instead = undefined;
    }),
);
