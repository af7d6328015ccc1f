import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A program that runs as one process. */
export interface Program {
  name: string;
  /** Path of the main module, relative to `cwd`. */
  script: string;
  cwd: string;
  env: (databaseUrl: string) => Record<string, string>;
}

const root = fileURLToPath(new URL('..', import.meta.url));
export const peersFolder = fileURLToPath(new URL('peers', import.meta.url));

const key = 'bench-key-that-is-long-enough-for-all';
export const authorization = { authorization: `Bearer ${key}` };

/**
 * The service as shipped: with a key, validation, and the log at its production
 * level.
 */
export const ourProgram: Program = {
  name: 'ours',
  script: 'dist/bundle/main.js',
  cwd: root,
  env: (databaseUrl) => ({
    DATABASE_URL: databaseUrl,
    BOOTSTRAP_API_KEY: key,
    LOG_LEVEL: 'info',
  }),
};

/** Earlier revisions had no bundle. */
const scriptIn = (folder: string) =>
  [ourProgram.script, 'dist/src/main.js'].find((path) =>
    existsSync(`${folder}/${path}`),
  ) ?? ourProgram.script;

/**
 * Another revision of this service. BENCH_PREVIOUS is a folder with its build.
 */
export const previousProgram: Program | undefined = process.env.BENCH_PREVIOUS
  ? {
      ...ourProgram,
      name: 'previous',
      cwd: process.env.BENCH_PREVIOUS,
      script: scriptIn(process.env.BENCH_PREVIOUS),
    }
  : undefined;

export function peer(name: string, script = `${name}.js`): Program {
  return {
    name,
    script,
    cwd: peersFolder,
    env: (databaseUrl) => ({ BENCH_DATABASE_URL: databaseUrl, BENCH_KEY: key }),
  };
}

const directusFolder = `${peersFolder}/directus`;
export const isDirectusInstalled = existsSync(`${directusFolder}/node_modules`);

/** @param isCached with its cache of answers, and a schema that it reads once */
export function directus(isCached: boolean): Program {
  const { env } = peer('directus');
  return {
    name: 'directus',
    script: 'directus.js',
    cwd: directusFolder,
    env: (databaseUrl) => ({
      ...env(databaseUrl),
      BENCH_CACHE: `${isCached}`,
    }),
  };
}
