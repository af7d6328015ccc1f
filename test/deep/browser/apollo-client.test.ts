import { build } from 'esbuild';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from '../../support/jest.ts';
import { eventually } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';
import { Road } from '../../support/road.ts';
import { storeForAll } from '../../support/store.ts';
import { hasBrowser, launch, visit } from '../support/browser.ts';

const inBrowser = hasBrowser ? describe : describe.skip;

/** A page with Apollo Client and its default link, which follows the list and subscribes again after a failure. */
const script = (key: string) => `
  import { ApolloClient, HttpLink, InMemoryCache, gql } from '@apollo/client/core';
  const link = new HttpLink({ uri: '/graphql', headers: { authorization: 'Bearer ${key}' } });
  const client = new ApolloClient({ link, cache: new InMemoryCache() });
  const query = gql\`subscription ($after: ID) { petAdded(after: $after) { id name } }\`;
  Object.assign(window, { seen: [], failures: 0 });
  const follow = () => {
    const live = client.subscribe({ query, variables: { after: seen.at(-1)?.id ?? '0' } });
    live.subscribe(({ data, error }) => {
      if (data) return seen.push(data.petAdded);
      failures += 1;
      setTimeout(follow, 50);
    });
  };
  follow();`;

inBrowser('in a real browser (skipped where there is no Chromium: CHROMIUM, or /usr/bin/chromium)', () => {
  const store = storeForAll();
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  test('@apollo/client follows the list by its own link, and misses none when its connection is lost', async () => {
    const road = new Road(new URL(store.origin));
    await road.open();
    const { origin } = new URL(road.url);
    const { page } = await visit(browser, origin);
    const stdin = { contents: script(store.key), resolveDir: 'test/deep' };
    const { outputFiles } = await build({ stdin, bundle: true, write: false, format: 'esm' });
    const body = `<!doctype html><script type="module">${outputFiles[0]?.text.replaceAll('</script', '<\\/script')}</script>`;
    // A page of the service's own origin, so that no preflight is needed.
    await page.route(`${origin}/live`, (route) => route.fulfill({ contentType: 'text/html', body }));
    await page.goto(`${origin}/live`);

    const names = Array.from({ length: 30 }, (_, at) => `animal ${at}`);
    const seenNames = () => page.evaluate('seen.map(({ name }) => name)') as Promise<string[]>;
    for (const [at, name] of names.entries()) {
      await rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId: 5 } });
      if (at % 10 !== 5) continue;
      await eventually(async () => (await seenNames()).length > at - 5);
      road.cut();
      await road.open();
    }
    await eventually(async () => (await seenNames()).length >= names.length);
    expect(await seenNames()).toEqual(names);
    expect(await page.evaluate('failures')).toBeGreaterThanOrEqual(3);
    await page.close();
    road.cut();
  });
});
