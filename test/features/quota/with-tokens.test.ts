import { expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { onNode, storeForAll } from '../../support/store.ts';
import { providerForAll } from '../tokens/provider.ts';

const provider = providerForAll();
const store = storeForAll();

test('each subject of a provider has a quota of its own', () =>
  onNode(store, { ...provider.env, QUOTA_PER_MINUTE: '10' }, async (node) => {
    const remaining = async (key: string) =>
      (await rest(node, '/v1/pets/999999', { key })).headers.ratelimit;
    expect(await remaining(provider.token())).toMatch('r=9');
    expect(await remaining(provider.token({ jti: 'b' }))).toMatch('r=8');
    expect(await remaining(provider.token({ sub: 'other' }))).toMatch('r=9');
    expect(await remaining(store.key)).toMatch('r=9');
  }));
