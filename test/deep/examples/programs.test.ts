import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  cp,
  mkdir,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { stock } from '../../support/database-access.ts';
import { newFolder } from '../../support/folder.ts';
import { send } from '../../support/http.ts';
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * The programs of examples/, run with the commands of their pages against the
 * service.
 */

const store = storeForAll();
beforeEach(() => store.empty());

const run = promisify(execFile);
const categoryId = 9007199254740993n;

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** The commands of a page, in their order. */
async function commandsOf(page: string): Promise<string[]> {
  const blocks = (await readFile(page, 'utf8')).matchAll(/```sh\n(.*?)```/gs);
  return Array.from(blocks, ([, commands = '']) => commands);
}

const shell = (
  commands: string,
  cwd: string,
  env: Record<string, string> = {},
): Promise<Ended> =>
  run('sh', ['-ec', commands], {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  }).then(
    (done) => ({ code: 0, ...done }),
    (failure) => failure,
  );

/** Runs the commands of the page of an example, in its folder. */
async function example(
  name: string,
  env: Record<string, string> = {},
): Promise<Ended> {
  const [commands = ''] = await commandsOf(`examples/${name}/README.md`);
  // `npm test` has built the client, which other tests use at the same time.
  return shell(
    commands.replace(/^npm run --silent build .*\n/m, ''),
    `examples/${name}`,
    {
      STORE_URL: store.origin,
      KEY: store.key,
      ...env,
    },
  );
}

/** Runs the work with a server in front of the service. */
async function withServerInFront(
  listener: RequestListener,
  work: (origin: string) => Promise<void>,
): Promise<void> {
  const front = createServer(listener).listen(0, '127.0.0.1');
  await once(front, 'listening');
  await work(
    `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
  ).finally(() => front.close());
}

/**
 * Forwards all requests, but loses the responses to every other POST, from the
 * first on.
 */
function losingListener(): RequestListener {
  let posts = 0;
  return async (request, response) => {
    const { method = '', url: path = '', headers } = request;
    const body = method === 'POST' ? await text(request) : undefined;
    const { host, connection, 'transfer-encoding': _, ...kept } = headers;
    const forwarded = await send(store.origin, {
      method,
      path,
      headers: kept as Record<string, string>,
      body,
    });
    const isLost = method === 'POST' && ++posts % 2 === 1;
    if (isLost) response.writeHead(503).end();
    else
      response
        .writeHead(forwarded.status, forwarded.headers)
        .end(forwarded.text);
  };
}

const listed = async () => (await rest(store, '/v1/pets')).json;

const rex = (id: number) =>
  `{"id":${id},"name":"Rex","categoryId":${categoryId},"status":"available"}`;

test.each<[string, (ids: number[]) => string]>([
  ['node', ([, , rex]) => byClient(rex)],
  ['python', ([, , rex]) => byClient(rex)],
  [
    'curl',
    ([a, b, rexId, tom]) => `- added by REST
${rex(rexId as number)}
- added by GraphQL
{"data":{"createPet":{"id":"${tom}","name":"Tom","categoryId":"${categoryId}"}}}
- all, two at a time
[{"id":${a},"name":"a","categoryId":1,"status":"available"},{"id":${b},"name":"b","categoryId":1,"status":"available"}]
[${rex(rexId as number)},{"id":${tom},"name":"Tom","categoryId":${categoryId},"status":"sold"}]
`,
  ],
])(
  '%s adds animals, and lists them page by page, with exact digits',
  async (name, shown) => {
    for (const name of ['a', 'b'])
      await rest(store, '/v1/pets', {
        method: 'POST',
        json: { name, categoryId: 1 },
      });
    const { stdout, stderr } = await example(name);
    const pets = await listed();
    expect({ stdout, stderr }).toEqual({
      stdout: shown(pets.map(({ id }: { id: number }) => id)),
      stderr: '',
    });
    expect(pets[2]).toEqual({
      id: pets[2].id,
      name: 'Rex',
      categoryId,
      status: 'available',
    });
  },
);

const byClient = (
  id: number | undefined,
) => `added Rex with the id ${id} in the category ${categoryId}
3 available by REST
by GraphQL: id ${id}, category ${categoryId}
`;

test.each(['node', 'python', 'curl'])(
  '%s sends a lost creation again, and adds the animal once',
  async (name) => {
    await withServerInFront(losingListener(), async (origin) => {
      expect(await example(name, { STORE_URL: origin })).toMatchObject({
        code: 0,
      });
    });
    const added = (await listed()).map(({ name }: { name: string }) => name);
    expect(added).toEqual(name === 'curl' ? ['Rex', 'Tom'] : ['Rex']);
  },
);

const invalid = 'The API key is not valid.';
test.each([
  ...['node', 'python'].map(
    (name) => [name, 1, '', `UNAUTHENTICATED: ${invalid}\n`] as const,
  ),
  [
    'curl',
    22,
    `- added by REST\n{"code":"UNAUTHENTICATED","message":"${invalid}","status":401}`,
    expect.any(String),
  ],
] as const)(
  '%s reports why a key is refused',
  async (name, code, stdout, stderr) => {
    expect(await example(name, { KEY: 'wrong' })).toMatchObject({
      code,
      stdout,
      stderr,
    });
  },
);

describe.each(['node', 'python'])('%s', (name) => {
  test('reads more than a page', async () => {
    await stock(store.database, 101);
    expect((await example(name)).stdout).toContain('\n102 available by REST\n');
  });

  test.each([
    [
      'Retry-After is too late a date',
      503,
      { 'retry-after': 'Wed, 21 Oct 2099 07:28:00 GMT' },
    ],
    ['the response is a page of HTML', 200, {}],
  ])(
    'sends one request, and reports the response, when %s',
    async (_, status, headers) => {
      let requestCount = 0;
      const listener: RequestListener = (_, response) => {
        requestCount++;
        response.writeHead(status, headers).end('<h1>Welcome</h1>');
      };
      await withServerInFront(listener, async (origin) => {
        const stderr = expect.stringMatching(/^UNEXPECTED_ANSWER: The answer /);
        expect(await example(name, { STORE_URL: origin })).toMatchObject({
          code: 1,
          stderr,
        });
      });
      expect(requestCount).toBe(1);
    },
  );
});

test.each(['rest.http', 'graphql.http'])(
  'http/%s has requests whose responses match their titles',
  async (file) => {
    const text = await readFile(`examples/http/${file}`, 'utf8');
    const [head = '', ...requests] = text
      .replace('ask_...', store.key)
      .split(/^### /m);
    const variables = new Map(
      Array.from(head.matchAll(/^@(\w+) = (.*)$/gm), ([, name = '', value]) => [
        name,
        value,
      ]),
    );
    expect([...variables.keys()]).toEqual(['key', 'url']);
    variables.set('url', store.origin);
    const statuses: string[] = [];
    for (const request of requests) {
      const [top = '', ...body] = request
        .replaceAll(/\{\{(\w+)\}\}/g, (_, name) => `${variables.get(name)}`)
        .split('\n\n');
      const [title = '', line = '', ...headers] = top.trimEnd().split('\n');
      const [method = '', url = ''] = line.split(' ');
      const pairs = headers.map(
        (header) => header.split(': ') as [string, string],
      );
      const init = {
        method,
        headers: pairs,
        ...(method === 'POST' && { body: body.join('\n\n') }),
      };
      const response = await fetch(url, init);
      const problem =
        response.status === 200 && /"errors"/.test(await response.text())
          ? ', with errors'
          : '';
      statuses.push(
        `${title.replace(/\(\d+\)/, `(${response.status}${problem})`)}`,
      );
    }
    expect(statuses).toEqual(
      requests.map((request) => request.split('\n', 1)[0]),
    );
  },
);

describe('the package of the typed client', () => {
  let folder: string;
  let sources: string;
  const offline = {
    npm_config_offline: 'true',
    npm_config_audit: 'false',
    npm_config_update_notifier: 'false',
  };
  // The files of a clone. Its client has not been built.
  const files =
    '.ci/release .gitignore .npmrc CHANGELOG.md package.json schema/openapi.json tsconfig.json';
  // What the packages of the engine are made of: a build would take a minute.
  const packed =
    'bin dist/src/cli.js docs examples/own-service packages test/modules tools/bundle.js tools/pack.js web';
  beforeAll(async () => {
    folder = await newFolder();
    sources = join(folder, 'clone');
    for (const file of files.split(' ')) await cp(file, join(sources, file));
    const isSource = (path: string) =>
      !/typescript\/dist|packages\/.*\/(?:src|test|node_modules)\b/.test(path);
    for (const part of ['clients/typescript', ...packed.split(' ')])
      await cp(part, join(sources, part), {
        recursive: true,
        filter: isSource,
      });
    await symlink(resolve('node_modules'), join(sources, 'node_modules'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test.each([
    ['.', 'npm pack --workspace animal-store-client'],
    ['.', 'npm pack ./clients/typescript/dist'],
    ['clients/typescript', 'npm pack --ignore-scripts=false'],
    ['clients/typescript', 'npm publish --dry-run'],
  ])('is not created empty in %s by %s', async (where, command) => {
    const { code, stderr } = await shell(
      command,
      join(sources, where),
      offline,
    );
    expect(code).not.toBe(0);
    expect(stderr).toContain('npm error');
    expect(
      (await readdir(join(sources, where))).filter((name) =>
        name.endsWith('.tgz'),
      ),
    ).toEqual([]);
  });

  test('is created, installed and used by the commands of its page', async () => {
    const here = (commands = '') =>
      commands
        .replaceAll('/tmp', folder)
        .replace('http://127.0.0.1:4000', store.origin)
        .replace('ask_...', store.key);
    const [pack, first] = await commandsOf('clients/typescript/README.md');
    expect(await shell(here(pack), sources, offline)).toMatchObject({
      code: 0,
    });
    const { stdout } = await shell(here(first), folder, offline);
    const [{ id }] = await listed();
    expect(stdout).toContain(`[
  {
    id: ${id}n,
    name: 'Rex',
    categoryId: 9007199254740993n,
    status: 'available'
  }
] undefined
`);
  });

  test('contains the files that it needs and no others', async () => {
    const files = await readdir(
      join(folder, 'shop/node_modules/animal-store-client'),
      { recursive: true },
    );
    const kinds = files.map((path) => path.replace(/^.*\.(js|d\.ts)$/, '*.$1'));
    expect([...new Set(kinds)].sort()).toEqual([
      '*.d.ts',
      '*.js',
      'LICENSE',
      'README.md',
      'generated',
      'package.json',
    ]);
  });

  describe('in a release', () => {
    /**
     * A program that runs, but only records its arguments instead of
     * publishing.
     */
    const recorded = (name: string, kept: string) => `#!/bin/sh
${kept ? `[ "$1" = ${kept} ] || exec /usr/bin/env PATH="$REST" ${name} "$@"` : ''}
echo "${name} $*" >>"$RECORD"
`;
    const record = () => readFile(join(folder, 'record'), 'utf8');
    beforeAll(async () => {
      await mkdir(join(folder, 'bin'));
      for (const [name, kept] of Object.entries({
        docker: '',
        npm: 'publish',
        git: 'push',
      })) {
        await writeFile(join(folder, 'bin', name), recorded(name, kept), {
          mode: 0o755,
        });
      }
      await commit('init -q', 'as it is');
    });
    const commit = (before: string, message: string) =>
      shell(
        `git ${before} && git add -A && git -c user.name=t -c user.email=t@localhost commit -qm '${message}'`,
        sources,
      );
    const release = async (...args: string[]) => {
      await writeFile(join(folder, 'record'), '');
      const REST = [resolve('node_modules/.bin'), process.env.PATH].join(':');
      const env = {
        ...offline,
        REST,
        RECORD: join(folder, 'record'),
        PATH: `${join(folder, 'bin')}:${REST}`,
      };
      return shell(`.ci/release ${args.join(' ')}`, sources, env);
    };

    test('is refused when its parts do not match, and publishes nothing', async () => {
      const manifest = join(sources, 'clients/typescript/publish.json');
      const text = await readFile(manifest, 'utf8');
      await writeFile(manifest, text.replace('"1.0.0"', '"0.9.0"'));
      const { code, stderr } = await release('--publish');
      expect(code).toBe(1);
      expect(stderr).toContain(
        'publish.json has the version 0.9.0, package.json has 1.0.0',
      );
      expect(stderr).toContain('CHANGELOG.md has no chapter "## 1.0.0 - ');
      expect(stderr).toContain('there are uncommitted changes');
      expect(await record()).not.toMatch(/push|publish/);
      await writeFile(manifest, text);
      expect((await release('--force')).code).toBe(2);
    });

    const released =
      'client cluster engine exact-json graphql-limits log openapi-mcp pglite-server'.split(
        ' ',
      );
    test('publishes once, when all is ready and --publish is given', async () => {
      const changelog = join(sources, 'CHANGELOG.md');
      const text = await readFile(changelog, 'utf8');
      await writeFile(
        changelog,
        text.replace('## Unreleased', '## 1.0.0 - 2026-11-22'),
      );
      await commit('status', 'release');
      const tried = await release();
      expect(tried).toMatchObject({ code: 0, stderr: '' });
      expect(tried.stdout).toContain(
        'would run: npm publish ./release/animal-store-client-1.0.0.tgz\n',
      );
      const build =
        /^docker build --build-arg VERSION=1\.0\.0 --build-arg REVISION=\w{40} --tag animal-store:1\.0\.0 \.\n/;
      expect(await record()).toMatch(new RegExp(`${build.source}$`));
      expect(await release('--publish')).toMatchObject({ code: 0, stderr: '' });
      expect((await record()).replace(build, '').split('\n')).toEqual([
        'docker push animal-store:1.0.0',
        ...released.map(
          (name) => `npm publish ./release/animal-store-${name}-1.0.0.tgz`,
        ),
        'git push origin v1.0.0',
        '',
      ]);
      const again = await release('--publish');
      expect(again).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('the tag v1.0.0 exists'),
      });
    });
  });

  test('the TypeScript of its page compiles with the types of the package', async () => {
    const page = await readFile('clients/typescript/README.md', 'utf8');
    const snippets = Array.from(
      page.matchAll(/```ts\n(.*?)```/gs),
      ([, snippet]) => `{\n${snippet}}`,
    );
    const file = join(folder, 'shop/page.mts');
    await writeFile(file, [prelude, ...snippets].join('\n'));
    const strict = ['--strict', '--exactOptionalPropertyTypes'];
    const options = [
      '--noEmit',
      ...strict,
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--ignoreConfig',
    ];
    const compiled = await run(resolve('node_modules/.bin/tsc'), [
      ...options,
      file,
    ]).catch((failure) => failure);
    expect(compiled.stdout).toBe('');
  });

  test('an engine that would round fails at once with the required versions', async () => {
    const program = `delete JSON.rawJSON;
      const { AnimalStore } = await import('animal-store-client');
      new AnimalStore({ url: 'http://127.0.0.1', key: 'k' });`;
    const failure = await run(process.execPath, [
      '--input-type=module',
      '--eval',
      program,
    ]).catch((error) => error);
    expect(failure.stderr).toContain(
      'Error: animal-store-client needs JSON.rawJSON',
    );
    expect(failure.stderr).toContain(
      'Node.js 22, Chrome 116, Firefox 135, Safari 18.4',
    );
  });
});

const prelude = `
import { AnimalStore, StoreError, type TypedDocument } from 'animal-store-client';
declare const store: AnimalStore;
declare const signal: AbortSignal;
declare const url: string, key: string;
declare const session: { accessToken(): Promise<string> };
declare const CreatePetDocument: TypedDocument<
  { createPet: { id: string } }, { input: { name: string; categoryId: string | bigint } }
>;
const id: bigint = (await store.create({ name: 'Rex', categoryId: 5 })).id;
for await (const pet of store.added()) pet.id satisfies bigint;
const textual = new AnimalStore({ url: '', key: '', ids: 'string' });
for await (const pet of textual.added({ after: '5' })) pet.id satisfies string;
(await textual.page()).next satisfies string | undefined;
// What may be left out may be undefined.
store.create({ name: 'Rex', categoryId: 5, status: undefined }, { idempotencyKey: undefined, signal: undefined });
store.page({ status: undefined, limit: undefined, after: undefined }, { timeoutMs: undefined });
store.count({ status: undefined });
// @ts-expect-error Its ids are strings.
(await textual.create({ name: 'Rex', categoryId: '5' })).id satisfies bigint;
// @ts-expect-error The status is unknown.
store.pets({ status: 'gone' });
// @ts-expect-error Its variables are required.
store.graphql(CreatePetDocument);
`;
