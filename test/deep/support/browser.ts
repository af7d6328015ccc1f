import { existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';

/** Debian's Chromium, or the one that CHROMIUM names. */
export const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const hasBrowser = existsSync(executablePath);

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-sync'],
  });
}

/** A page, and everything about it that a user should never see. */
export interface Visit {
  page: Page;
  /** Errors of scripts, of the console, and of the content security policy. */
  complaints: string[];
  /** Addresses outside the service that the page asked for. */
  foreign: string[];
}

export interface Stub {
  contentType: string;
  body: string;
}

/** Opens a page whose requests to other hosts are answered by `stubs`, by address, or not at all. */
export async function visit(browser: Browser, origin: string, stubs: Record<string, Stub> = {}): Promise<Visit> {
  const page = await browser.newPage();
  const complaints: string[] = [];
  const foreign: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  await page.route(
    (url) => url.origin !== origin,
    async (route) => {
      const address = route.request().url();
      const [, stub] = Object.entries(stubs).find(([prefix]) => address.startsWith(prefix)) ?? [];
      if (stub) return route.fulfill(stub);
      foreign.push(address);
      return route.abort();
    },
  );
  return { page, complaints, foreign };
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

const looks = [
  { name: 'wide-light', colorScheme: 'light', width: 1280, height: 900 },
  { name: 'wide-dark', colorScheme: 'dark', width: 1280, height: 900 },
  { name: 'phone-light', colorScheme: 'light', width: 390, height: 844 },
  { name: 'phone-dark', colorScheme: 'dark', width: 390, height: 844 },
] as const;

/**
 * Shows the page in looks that have both colours and both widths; with SCREENSHOTS, in every look, and photographs it into
 * that folder.
 */
export async function eachLook(page: Page, name: string, check: (look: string) => Promise<void>): Promise<void> {
  const folder = process.env.SCREENSHOTS;
  if (folder) await mkdir(folder, { recursive: true });
  for (const { name: look, colorScheme, width, height } of folder ? looks : [looks[0], looks[3]]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height });
    await check(look);
    if (folder) await page.screenshot({ path: join(folder, `${name}-${look}.png`), fullPage: true });
  }
}
