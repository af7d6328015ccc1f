import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { databaseForAll } from '../../support/each.ts';
import { faces, type SeenPet } from '../../support/faces.ts';
import { newFolder } from '../../support/folder.ts';
import { afterAll, beforeAll, describe, expect, test } from '../../support/jest.ts';
import { bootstrapKey, type Env, eventually, runFile, type ServerProcess, startServer } from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/** What stood for a release before there were tags. */
const beforeTags = 'c7decfc';

const previous = previousRelease();
const title = `the previous release (${previous ?? `skipped: no git, or a clone without ${beforeTags}`}) beside this one (not through a pooler, which it cannot use)`;

/** The newest tag before this commit, or what stands for it. */
function previousRelease(): string | undefined {
  try {
    const tags = ['--list', 'v*', '--merged', 'HEAD', '--no-contains', 'HEAD', '--sort=-v:refname'];
    const [tag] = git('tag', ...tags).split('\n');
    return git('rev-parse', '--short', '--verify', `${tag || beforeTags}^{commit}`);
  } catch {
    return undefined;
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}

/** Builds a release with the dependencies of this one. */
async function build(release: string): Promise<string> {
  const folder = await newFolder();
  const input = execFileSync('git', ['archive', '--format=tar', release], { maxBuffer: 2 ** 28 });
  execFileSync('tar', ['-x', '-C', folder], { input });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  // The service does not use it any more.
  mkdirSync(join(folder, 'dist/node_modules'), { recursive: true });
  symlinkSync(resolve('test/deep/node_modules/envalid'), join(folder, 'dist/node_modules/envalid'));
  // It was checked when it was made; the types of dependencies may have changed since.
  execFileSync(resolve('node_modules/.bin/tsc'), ['-p', join(folder, 'tsconfig.json'), '--noCheck']);
  return folder;
}

(previous && !process.env.TEST_POOLER_URL ? describe : describe.skip)(title, () => {
  const database = databaseForAll();
  let folder: string;
  let env: Env;
  /** One of each, on a database that this release has migrated. */
  let servers: [ServerProcess, ServerProcess];
  beforeAll(async () => {
    folder = await build(previous as string);
    expect(await command('.', ['migrate'], database.env)).toMatchObject({ code: 0 });
    env = { ...database.env, MIGRATE_ON_START: 'false' };
    const withKey = { ...env, BOOTSTRAP_API_KEY: bootstrapKey };
    const old = startServer(withKey, { file: join(folder, 'dist/src/main.js') });
    servers = await Promise.all([old, startServer(withKey)]);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const command = (root: string, args: string[], env: Env) => runFile(join(root, 'dist/src/cli.js'), args, env).ended;

  test('what is added through either is found and listed by both, and ids ascend', async () => {
    const roads = servers.flatMap((server) => faces.map((face) => ({ server: server as never, face })));
    const statuses = ['available', 'pending', 'sold'];
    const add = async (number: number): Promise<SeenPet> => {
      const { face, server } = roads[number % 4] as (typeof roads)[number];
      const newPet = { name: `pet ${number}`, categoryId: number, status: statuses[number % 3] };
      const outcome = await face.create(server, newPet);
      expect(outcome).toEqual({ data: { ...newPet, id: expect.any(String), categoryId: `${number}` } });
      return (outcome as { data: SeenPet }).data;
    };
    const added: SeenPet[] = [];
    for (let number = 0; number < 12; number += 1) added.push(await add(number));
    expect(added).toEqual(sorted(added));
    added.push(...sorted(await Promise.all(Array.from({ length: 40 }, (_, index) => add(12 + index)))));
    expect(added).toEqual(sorted(added));

    for (const { server, face } of roads) {
      for (const status of [undefined, ...statuses]) {
        const expected = added.filter((pet) => status === undefined || pet.status === status);
        expect(await pages((query) => face.list(server, { ...(status && { status }), ...query }))).toEqual(expected);
      }
      for (const pet of added.slice(0, 16)) expect(await face.find(server, pet.id)).toEqual({ data: pet });
    }
  });

  test('a key that either issues, rotates or revokes is so for both', async () => {
    const states = async (key: string) =>
      Promise.all(servers.map(async (server) => (await rest(server, '/v1/pets', { key })).status));
    for (const [own, other] of [
      [folder, '.'],
      ['.', folder],
    ] as const) {
      const issued = JSON.parse((await command(own, ['keys', 'issue', '--name', 'shop', '--json'], env)).stdout);
      expect(await states(issued.key)).toEqual([200, 200]);
      const rotated = JSON.parse((await command(other, ['keys', 'rotate', `${issued.id}`, '--json'], env)).stdout);
      expect(await states(rotated.key)).toEqual([200, 200]);
      expect(await command(own, ['keys', 'revoke', `${issued.id}`], env)).toMatchObject({ code: 0 });
      await eventually(async () => (await states(rotated.key)).every((status) => status === 401));
    }
  });
});

const sorted = (pets: SeenPet[]) => pets.toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));

/** All pages, one after the other. */
async function pages(list: (query: object) => Promise<unknown>): Promise<SeenPet[]> {
  const seen: SeenPet[] = [];
  for (;;) {
    const last = seen.at(-1);
    const { data } = (await list({ limit: 7, ...(last && { after: last.id }) })) as { data: SeenPet[] };
    seen.push(...data);
    if (data.length < 7) return seen;
  }
}
