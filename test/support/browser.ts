import { existsSync } from 'node:fs';
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
