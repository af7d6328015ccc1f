import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from '../../support/jest.ts';

/** Debian's Chromium, or the one that CHROMIUM names. */
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** A group of tests in a real browser. */
export function inBrowser(define: () => void): void {
  const group = existsSync(executablePath) ? describe : describe.skip;
  group('in a real browser (skipped where there is no Chromium: CHROMIUM, or /usr/bin/chromium)', define);
}

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-sync'],
  });
}

export interface Stub {
  contentType: string;
  body: string;
}

/** What is not as it must be on every page. */
interface Unusual {
  /** Answers of other hosts, by the beginning of an address. There are no others. */
  stubs?: Record<string, Stub>;
  /** Errors of scripts, of the console, and of the content security policy. */
  complaints?: string[];
  /** Whether the service refuses a key, which the browser reports as an error. */
  isRefused?: boolean;
  /** Addresses outside the service that the page asks for in vain. */
  foreign?: string[];
}

/** A browser for the tests of a group. @returns a function that opens a page, and in the end holds it to `unusual` */
export function browserForAll(service: { origin: string }) {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  return async (work: (page: Page) => Promise<void>, unusual: Unusual = {}): Promise<void> => {
    const { stubs = {}, complaints = [], isRefused = false, foreign = [] } = unusual;
    const page = await browser.newPage({ baseURL: service.origin });
    const seen = { complaints: [] as string[], foreign: [] as string[] };
    const complain = (text: string) => {
      if (!isRefused || !text.includes('401')) seen.complaints.push(text);
    };
    page.on('pageerror', (error) => complain(error.message));
    page.on('console', (message) => message.type() === 'error' && complain(message.text()));
    await page.route(
      (url) => url.origin !== service.origin,
      async (route) => {
        const address = route.request().url();
        const [, stub] = Object.entries(stubs).find(([prefix]) => address.startsWith(prefix)) ?? [];
        if (stub) return route.fulfill(stub);
        seen.foreign.push(address);
        return route.abort();
      },
    );
    await work(page);
    expect(seen).toEqual({ complaints, foreign });
    await page.close();
  };
}

const axe = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'));

/** What axe-core finds serious or critical on a page, each with the first place. None is as it must be. */
export async function barriers(page: Page): Promise<string[]> {
  // Not a script element: the page's policy would forbid it.
  await page.evaluate(readFileSync(axe, 'utf8'));
  const violations = await page.evaluate(async () => (await (globalThis as unknown as WithAxe).axe.run()).violations);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html} (${nodes.length})`);
}

interface WithAxe {
  axe: { run(): Promise<{ violations: Array<{ id: string; impact: string; nodes: Array<{ html: string }> }> }> };
}

/** Both colours, both widths. */
const looks = [
  { look: 'wide and light', colorScheme: 'light', width: 1280, height: 900 },
  { look: 'a phone, dark', colorScheme: 'dark', width: 390, height: 844 },
] as const;

/** Shows the page in each look. Unless `check` says otherwise there must be no barrier, and nothing wider than the window. */
export async function eachLook(page: Page, check = isOpenToAll(page)): Promise<void> {
  for (const { look, colorScheme, width, height } of looks) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await check(look);
  }
}

export const isOpenToAll = (page: Page) => async (look: string) => {
  const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  expect([look, await barriers(page), overflow]).toEqual([look, [], 0]);
};
