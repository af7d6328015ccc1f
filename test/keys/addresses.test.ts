import { callWith, guess, judged } from '../support/guesses.ts';
import { describe, expect, test } from '../support/jest.ts';
import { onNode } from '../support/nodes.ts';
import { storeForAll } from '../support/store.ts';

const store = storeForAll();

const limited = { AUTH_FAILURES_PER_MINUTE: '5' };
const as = (name: string, value: (at: number) => string) => (at: number) => ({ [name]: value(at) });
const from = (address: string) => ({ 'x-forwarded-for': address });

describe('the address that counts', () => {
  test.each([
    ['X-Forwarded-For', as('x-forwarded-for', (at) => `192.0.2.${at}`)],
    ['Forwarded', as('forwarded', (at) => `for=192.0.2.${at}`)],
    ['X-Real-IP', as('x-real-ip', (at) => `192.0.2.${at}`)],
    ['X-Client-IP', as('x-client-ip', (at) => `192.0.2.${at}`)],
    ['True-Client-IP', as('true-client-ip', (at) => `192.0.2.${at}`)],
  ])('is the connection, whatever %s says, without TRUST_PROXY', async (_name, headers) => {
    await onNode(store, limited, async (node) => {
      expect(await guess(node, 6, headers)).toEqual(judged(5, 6));
    });
  });

  test('behind a proxy is the client that X-Forwarded-For names', async () => {
    await onNode(store, { ...limited, TRUST_PROXY: '1' }, async (node) => {
      expect(await guess(node, 6, () => from('192.0.2.1'))).toEqual(judged(5, 6));
      expect(await guess(node, 1, () => from('192.0.2.2'))).toEqual([401]);
    });
  });

  test('behind one proxy is what that proxy added, not what the client wrote before it', async () => {
    await onNode(store, { ...limited, TRUST_PROXY: '1' }, async (node) => {
      expect(await guess(node, 6, (at) => from(`198.51.100.${at}, 192.0.2.1`))).toEqual(judged(5, 6));
    });
  });

  test('is the connection when TRUST_PROXY names other proxies', async () => {
    await onNode(store, { ...limited, TRUST_PROXY: '203.0.113.9' }, async (node) => {
      expect(await guess(node, 6, (at) => from(`192.0.2.${at}`))).toEqual(judged(5, 6));
    });
  });

  test('is one for all addresses of an IPv6 network of 64 bits, which is what one client has', async () => {
    await onNode(store, { ...limited, TRUST_PROXY: '1' }, async (node) => {
      const neighbours = ['2001:db8:0:1::1', '2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:db8::1:0:0:0:2'];
      expect(await guess(node, 6, (at) => from(neighbours[at % 3] as string))).toEqual(judged(5, 6));
      for (const stranger of ['2001:db8:0:2::1', '2001:db8::1', '2001:db9:0:1::1', '::1', '192.0.2.1']) {
        expect(await guess(node, 1, () => from(stranger))).toEqual([401]);
      }
    });
  });

  test('is the whole IPv4 address, also as an operating system that listens on IPv6 writes it', async () => {
    await onNode(store, { ...limited, TRUST_PROXY: '1' }, async (node) => {
      const spellings = ['::ffff:192.0.2.1', '192.0.2.1', '::FFFF:c000:0201'];
      expect(await guess(node, 6, (at) => from(spellings[at % 3] as string))).toEqual(judged(5, 6));
      expect(await guess(node, 1, () => from('::ffff:192.0.2.2'))).toEqual([401]);
    });
  });
});

// Proxies write X-Forwarded-*, and pass on what else a client sends: RFC 7239's Forwarded is the client's own word.
describe.each(['1', '127.0.0.1'])('Forwarded is ignored with TRUST_PROXY=%s', (TRUST_PROXY) => {
  const behindProxy = { ...limited, TRUST_PROXY };
  const claiming = (address: string) => ({ ...from('192.0.2.1'), forwarded: `for=${address}` });

  test.each([
    ['an IPv4 address', (at: number) => `198.51.100.${at}`],
    ['an IPv6 address', (at: number) => `"[2001:db8:${at}::1]:4711"`],
    ['nothing readable', () => '"'],
  ])('who names %s there does not escape the limit', async (_what, address) => {
    await onNode(store, behindProxy, async (node) => {
      expect(await guess(node, 7, (at) => claiming(address(at)))).toEqual(judged(5, 7));
    });
  });

  test('who names a victim there does not lock it out', async () => {
    const { key } = await store.keys.issue({ name: 'never seen before' });
    await onNode(store, behindProxy, async (node) => {
      expect(await guess(node, 7, () => claiming('203.0.113.7'))).toEqual(judged(5, 7));
      expect((await callWith(node, key, from('203.0.113.7'))).status).toBe(200);
    });
  });

  test('alone it names nobody: what counts is the connection', async () => {
    await onNode(store, behindProxy, async (node) => {
      expect(await guess(node, 7, (at) => ({ forwarded: `for=198.51.100.${at}` }))).toEqual(judged(5, 7));
    });
  });
});
