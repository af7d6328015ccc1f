import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from '../../support/jest.ts';
import { executablePath, launch } from './chromium.ts';

/** A group of tests in a real browser. */
export function inBrowser(define: () => void): void {
  const group = existsSync(executablePath) ? describe : describe.skip;
  group(
    'in a real browser (skipped where there is no Chromium: CHROMIUM, or /usr/bin/chromium)',
    define,
  );
}

export interface Stub {
  contentType: string;
  body: string;
}

/** Exceptions to the rules for every page. */
interface Exceptions {
  /**
   * Responses of other hosts, by the prefix of an address. Requests for other
   * addresses fail.
   */
  stubs?: Record<string, Stub>;
  /** Errors of scripts, of the console, and of the content security policy. */
  errors?: string[];
  /**
   * Whether the service refuses a key, which the browser reports as an error.
   */
  isRefused?: boolean;
  /** Addresses of other hosts that the page requests. The requests fail. */
  foreign?: string[];
}

/**
 * In ms, less than the limit of a test. Playwright's own 30 s are too short for
 * a busy machine.
 */
export const patience = 100_000;

/**
 * Starts a browser for a group of tests. @returns a function that opens a page,
 * and checks it in the end
 */
export function browserForAll(service: { origin: string }) {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  return async (
    work: (page: Page) => Promise<void>,
    exceptions: Exceptions = {},
  ): Promise<void> => {
    const {
      stubs = {},
      errors = [],
      isRefused = false,
      foreign = [],
    } = exceptions;
    const page = await browser.newPage({ baseURL: service.origin });
    page.setDefaultTimeout(patience);
    const found = { errors: [] as string[], foreign: [] as string[] };
    const addError = (text: string) => {
      if (!isRefused || !text.includes('401')) found.errors.push(text);
    };
    page.on('pageerror', (error) => addError(error.message));
    page.on(
      'console',
      (message) => message.type() === 'error' && addError(message.text()),
    );
    await page.route(
      (url) => url.origin !== service.origin,
      async (route) => {
        const address = route.request().url();
        const [, stub] =
          Object.entries(stubs).find(([prefix]) =>
            address.startsWith(prefix),
          ) ?? [];
        if (stub) return route.fulfill(stub);
        found.foreign.push(address);
        return route.abort();
      },
    );
    await work(page);
    expect(found).toEqual({ errors, foreign });
    await page.close();
  };
}

const axe = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'));

/**
 * The serious and critical violations that axe-core finds on a page, each with
 * its first element.
 */
export async function barriers(page: Page): Promise<string[]> {
  // The page's policy would forbid a script element.
  await page.evaluate(readFileSync(axe, 'utf8'));
  const violations = await page.evaluate(
    async () => (await (globalThis as unknown as WithAxe).axe.run()).violations,
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html} (${nodes.length})`);
}

interface WithAxe {
  axe: {
    run(): Promise<{
      violations: Array<{
        id: string;
        impact: string;
        nodes: Array<{ html: string }>;
      }>;
    }>;
  };
}

/** Both colours, both widths. */
const displays = [
  { display: 'wide and light', colorScheme: 'light', width: 1280, height: 900 },
  { display: 'a phone, dark', colorScheme: 'dark', width: 390, height: 844 },
] as const;

/**
 * Checks the page on each display. By default it must have no barrier, and
 * nothing wider than the window.
 */
export async function eachDisplay(
  page: Page,
  check = expectAccessible(page),
): Promise<void> {
  for (const { display, colorScheme, width, height } of displays) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await check(display);
  }
}

export const expectAccessible = (page: Page) => async (display: string) => {
  const overflow = await page.evaluate(
    'document.documentElement.scrollWidth - innerWidth',
  );
  expect([display, await barriers(page), overflow]).toEqual([display, [], 0]);
};
