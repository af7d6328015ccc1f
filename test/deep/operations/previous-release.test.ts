// runs: embedded, postgres

import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { apis, type SeenPet } from '../../support/apis.ts';
import { databaseForAll } from '../../support/fixtures.ts';
import { newFolder } from '../../support/folder.ts';
import {
  afterAll,
  beforeAll,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import {
  bootstrapKey,
  type Env,
  eventually,
  runFile,
  type ServerProcess,
  startServer,
} from '../../support/process.ts';
import { rest } from '../../support/rest.ts';

/** The commit that counts as the previous release if no tag exists. */
const beforeTags = 'c7decfc';

const previous = previousRelease();
const title = `the previous release (${previous ?? `skipped: no git, or a clone without ${beforeTags}`}) beside this one (not through a pooler, which it cannot use)`;

/** The commit of the newest tag before this commit, or else `beforeTags`. */
function previousRelease(): string | undefined {
  try {
    const tags = [
      '--list',
      'v*',
      '--merged',
      'HEAD',
      '--no-contains',
      'HEAD',
      '--sort=-v:refname',
    ];
    const [tag] = git('tag', ...tags).split('\n');
    return git(
      'rev-parse',
      '--short',
      '--verify',
      `${tag || beforeTags}^{commit}`,
    );
  } catch {
    return undefined;
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

/** Builds a release with the dependencies of this one. */
async function build(release: string): Promise<string> {
  const folder = await newFolder();
  const input = execFileSync('git', ['archive', '--format=tar', release], {
    maxBuffer: 2 ** 28,
  });
  execFileSync('tar', ['-x', '-C', folder], { input });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  // The previous release needs packages that this one does not use.
  mkdirSync(join(folder, 'dist/node_modules'), { recursive: true });
  for (const name of ['envalid', 'close-with-grace']) {
    symlinkSync(
      resolve('test/deep/node_modules', name),
      join(folder, 'dist/node_modules', name),
    );
  }
  // No type check, because the types of the dependencies may have changed since
  // that release.
  execFileSync(resolve('node_modules/.bin/tsc'), [
    '-p',
    join(folder, 'tsconfig.json'),
    '--noCheck',
  ]);
  return folder;
}

(previous && !process.env.TEST_POOLER_URL ? describe : describe.skip)(
  title,
  () => {
    const database = databaseForAll();
    let folder: string;
    let env: Env;
    /**
     * The previous release and this one, on a database that this release has
     * migrated.
     */
    let servers: [ServerProcess, ServerProcess];
    beforeAll(async () => {
      folder = await build(previous as string);
      expect(await command('.', ['migrate'], database.env)).toMatchObject({
        code: 0,
      });
      env = { ...database.env, MIGRATE_ON_START: 'false' };
      const withKey = { ...env, BOOTSTRAP_API_KEY: bootstrapKey };
      const old = startServer(withKey, {
        file: join(folder, 'dist/src/main.js'),
      });
      servers = await Promise.all([old, startServer(withKey)]);
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    const command = (root: string, args: string[], env: Env) =>
      runFile(join(root, 'dist/src/cli.js'), args, env).ended;

    test('both releases find and list the animals that either adds, and ids ascend', async () => {
      const routes = servers.flatMap((server) =>
        apis.map((api) => ({ server: server as never, api })),
      );
      const statuses = ['available', 'pending', 'sold'];
      const add = async (number: number): Promise<SeenPet> => {
        const { api, server } = routes[number % 4] as (typeof routes)[number];
        const newPet = {
          name: `pet ${number}`,
          categoryId: number,
          status: statuses[number % 3],
        };
        const outcome = await api.create(server, newPet);
        expect(outcome).toEqual({
          data: { ...newPet, id: expect.any(String), categoryId: `${number}` },
        });
        return (outcome as { data: SeenPet }).data;
      };
      const added: SeenPet[] = [];
      for (let number = 0; number < 12; number += 1)
        added.push(await add(number));
      expect(added).toEqual(sorted(added));
      added.push(
        ...sorted(
          await Promise.all(
            Array.from({ length: 40 }, (_, index) => add(12 + index)),
          ),
        ),
      );
      expect(added).toEqual(sorted(added));

      for (const { server, api } of routes) {
        for (const status of [undefined, ...statuses]) {
          const expected = added.filter(
            (pet) => status === undefined || pet.status === status,
          );
          expect(
            await pages((query) =>
              api.list(server, { ...(status && { status }), ...query }),
            ),
          ).toEqual(expected);
        }
        for (const pet of added.slice(0, 16))
          expect(await api.find(server, pet.id)).toEqual({ data: pet });
      }
    });

    test('both releases accept a key that either has issued or rotated, and refuse it after either has revoked it', async () => {
      const states = async (key: string) =>
        Promise.all(
          servers.map(
            async (server) => (await rest(server, '/v1/pets', { key })).status,
          ),
        );
      for (const [own, other] of [
        [folder, '.'],
        ['.', folder],
      ] as const) {
        const issued = JSON.parse(
          (
            await command(
              own,
              ['keys', 'issue', '--name', 'shop', '--json'],
              env,
            )
          ).stdout,
        );
        expect(await states(issued.key)).toEqual([200, 200]);
        const rotated = JSON.parse(
          (
            await command(
              other,
              ['keys', 'rotate', `${issued.id}`, '--json'],
              env,
            )
          ).stdout,
        );
        expect(await states(rotated.key)).toEqual([200, 200]);
        expect(
          await command(own, ['keys', 'revoke', `${issued.id}`], env),
        ).toMatchObject({ code: 0 });
        await eventually(async () =>
          (await states(rotated.key)).every((status) => status === 401),
        );
      }
    });
  },
);

const sorted = (pets: SeenPet[]) =>
  pets.toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));

/** All pages, one after the other. */
async function pages(
  list: (query: object) => Promise<unknown>,
): Promise<SeenPet[]> {
  const pets: SeenPet[] = [];
  for (;;) {
    const last = pets.at(-1);
    const { data } = (await list({
      limit: 7,
      ...(last && { after: last.id }),
    })) as { data: SeenPet[] };
    pets.push(...data);
    if (data.length < 7) return pets;
  }
}
