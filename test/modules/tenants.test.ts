// runs: embedded

import { rm } from 'node:fs/promises';
import { newFolder } from '../support/folder.ts';
import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import {
  type Env,
  eventually,
  freePort,
  killAll,
  type Running,
  runFile,
} from '../support/process.ts';

/** A collection of tenants, where no token names one. */

const program = 'dist/test/support/archive.js';
const closed =
  'no caller has a tenant, which files need: set JWT_TENANT of the feature tokens';
let folder: string;
let env: Env;
let server: Running;

beforeAll(async () => {
  folder = await newFolder();
  env = { DATA_DIR: folder, PORT: `${await freePort()}` };
  server = runFile(program, ['start'], env);
  await eventually(async () => server.output.stdout.includes('Explore:'));
});
afterAll(async () => {
  await killAll();
  await rm(folder, { recursive: true });
});

const warnings = async (more: Env) => {
  const args = ['doctor', '--json'];
  const { stdout } = await runFile(program, args, { ...env, ...more }).ended;
  const { findings } = JSON.parse(stdout);
  const isOfTenants = ({ check }: { check: string }) => check === 'tenants';
  return findings.filter(isOfTenants);
};

test('a start says that no key reads it, and its first call is of another collection', () => {
  const { stdout } = server.output;
  expect(stdout).toContain(`"level":40,`);
  expect(stdout).toContain(`"msg":"${closed}"`);
  expect(stdout).toMatch(/curl .*\/v1\/books\n/);
  expect(stdout).not.toContain('/v1/files');
});

test('doctor says so, unless tokens name tenants', async () => {
  const remedy = 'see docs/frontends.md';
  expect(await warnings({})).toEqual([
    { check: 'tenants', state: 'warning', found: closed, remedy },
  ]);
  const tokens = {
    JWT_ISSUER: 'http://127.0.0.1:1',
    JWT_AUDIENCE: 'archive',
    JWT_TENANT: 'town',
  };
  expect(await warnings(tokens)).toEqual([]);
});
