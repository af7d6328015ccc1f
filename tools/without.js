// Leaves optional parts out (docs/leave-parts-out.md):
//   npm run without                    the table of all features
//   npm run without -- NAME [NAME ...] a copy without these: its types, its
//                                      contracts, its start, its tests
//   npm run without -- --all           the core alone
//   npm run without -- --each          each feature alone: start and contracts,
//                                      as many at once as there are processors
//   npm run without -- --quick NAME    one of these, of what is compiled here
//   npm run without -- --pets [TESTS]  a copy with toys in place of pets, and
//                                      the pets as material of its tests
// Without arguments it fails when something else names a feature.
// TEST_DATABASE_URL names the PostgreSQL of a copy without the embedded store.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { createServer } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../bin/node.js';

/**
 * @typedef {object} Feature
 * @property {string} name
 * @property {readonly string[]} [needs]
 * @property {Record<string, unknown>} [variables]
 */

const list = 'src/features.ts';
const embedded = 'embedded-store';
const quickTests = [
  'test/parity/new-animals',
  'test/parity/authentication-first',
];
/** These run or document the service with all of its parts. */
const wholeService =
  /^(?:src\/features\.ts|test\/drills\/|test\/deep\/docs\/|test\/support\/database\.ts|tools\/without\.js)/;

process.chdir(root);
// Most of what is loaded is the same in each copy.
process.env.NODE_COMPILE_CACHE ??= join(root, 'dist/compile-cache');
const args = process.argv.slice(2);
const isBuilt = args[0] === '--quick' || Boolean(process.env.TEST_BUILT);
if (!isBuilt) {
  run('node', ['bin/build.js']);
  run('tsc', ['-p', 'clients/typescript']);
}
const { features } = await import(`${root}/dist/src/features.js`);
const names = features.map((/** @type {Feature} */ { name }) => name);
const unknown = args.filter((one) => !/^--/.test(one) && !names.includes(one));
if (args[0] !== '--pets' && unknown.length > 0)
  throw new Error(`unknown: ${unknown}; the features are ${names}`);
if (args.length === 0) printTable(features);
else if (args[0] === '--each') {
  if (!isBuilt) compileTests(root, ['--noCheck']);
  const waiting = [...names];
  const lanes = Array.from({ length: availableParallelism() }, () =>
    tryOneByOne(waiting),
  );
  await Promise.all(lanes);
} else if (args[0] === '--quick')
  await tryWithout(features, args.slice(1), true);
else if (args[0] === '--pets') await tryWithoutPets(features, args.slice(1));
else await tryWithout(features, args[0] === '--all' ? names : args, false);

/**
 * Tries names in processes of their own, and prints the output of each at its
 * end. The first start makes a store, on which the others start.
 *
 * @param {string[]} waiting taken from by several callers
 */
async function tryOneByOne(waiting) {
  const store = mkdtempSync(join(tmpdir(), 'animal-store-without-'));
  const env = { ...process.env, WITHOUT_STORE: store };
  for (let name = waiting.shift(); name; name = waiting.shift()) {
    const one = spawn('node', ['tools/without.js', '--quick', name], { env });
    let output = '';
    for (const stream of [one.stdout, one.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    const [code] = await once(one, 'close');
    process.stdout.write(output);
    if (code !== 0) process.exitCode = 1;
  }
  rmSync(store, { recursive: true });
}

/**
 * Deletes features in a copy, and runs what must still work.
 *
 * @param {Feature[]} features
 * @param {string[]} chosen
 * @param {boolean} isQuick takes the compiled files, and runs a few tests
 */
async function tryWithout(features, chosen, isQuick) {
  const names = withDependents(features, chosen);
  const began = Date.now();
  const copy = mkdtempSync(join(tmpdir(), 'animal-store-without-'));
  try {
    copyTree(features, names, copy);
    if (isQuick) copyCompiled(names, copy);
    else {
      run('node', ['bin/build.js'], copy);
      run('tsc', ['-b', '--incremental'], copy);
      compileTests(copy, []);
    }
    const { stores, env } = environments(names, copy);
    run('node', ['dist/src/cli.js', 'schema'], copy, stores);
    await start(copy, stores, 'pets');
    const jest = 'node_modules/jest/bin/jest.js';
    const options = ['--config', 'test/jest.config.js', '--silent'];
    // A second worker would load the service once more.
    if (isQuick) options.push('--maxWorkers=1', ...quickTests);
    run('node', [jest, ...options], copy, env);
  } finally {
    rmSync(copy, { recursive: true });
  }
  const seconds = Math.round((Date.now() - began) / 1000);
  print(`without ${names.join(', ')}: works (${seconds} s)`);
}

/**
 * The chosen features, and those that need them.
 *
 * @param {Feature[]} features
 * @param {string[]} chosen
 */
function withDependents(features, chosen) {
  const names = new Set(chosen);
  for (const { name, needs = [] } of features)
    if (needs.some((one) => names.has(one))) names.add(name);
  return [...names];
}

/**
 * Copies the sources, without these features and their tests.
 *
 * @param {Feature[]} features
 * @param {string[]} names
 * @param {string} copy
 */
function copyTree(features, names, copy) {
  const listed = ['ls-files', '-co', '--exclude-standard', '-z'];
  const files = execFileSync('git', listed, { encoding: 'utf8' }).split('\0');
  for (const file of files.filter((one) => one && !isOf(names, one)))
    if (existsSync(file)) cpSync(file, join(copy, file));
  for (const name of ['node_modules', 'test/deep/node_modules'])
    if (existsSync(name)) symlinkSync(join(root, name), join(copy, name));
  if (names.length === 0) return;
  writeFileSync(join(copy, list), listWithout(features, names));
  const example = join(copy, '.env.example');
  const variables = features
    .filter(({ name }) => names.includes(name))
    .flatMap(({ variables = {} }) => Object.keys(variables));
  writeFileSync(example, exampleWithout(variables));
}

/**
 * Whether a file goes with these features. A test of two features is in the
 * folder of one, and named by the other.
 *
 * @param {string[]} names
 * @param {string} file
 */
function isOf(names, file) {
  return (
    foldersOf(names).some((folder) => file.startsWith(`${folder}/`)) ||
    names.some((name) => file.endsWith(`/with-${name}.test.ts`))
  );
}

/** @param {string[]} names */
function foldersOf(names) {
  const places = ['src/features', 'test/features', 'test/deep/features'];
  return places.flatMap((place) => names.map((name) => `${place}/${name}`));
}

/**
 * The list, in which `removed` takes the places of these features.
 *
 * @param {Feature[]} features
 * @param {string[]} names
 */
function listWithout(features, names) {
  let text = readFileSync(list, 'utf8');
  for (const { name, variables = {} } of features) {
    if (!names.includes(name)) continue;
    const path = ['.', 'features', name, 'index.ts'].join('/');
    const imported = new RegExp(`^import \\{ (\\w+) \\} .*'${path}';\\n`, 'm');
    const [line, entry] = imported.exec(text) ?? [];
    if (!line) throw new Error(`${list} does not import ${name} in one line`);
    const refused = [name, ...Object.keys(variables)].map((one) => `'${one}'`);
    text = text
      .replace(line, '')
      .replace(new RegExp(`^ {2}${entry},$`, 'm'), `  removed(${refused}),`);
  }
  return text.replace(
    "import type { Feature } from './feature.ts';",
    "import { type Feature, removed } from './feature.ts';",
  );
}

/** @param {string[]} variables */
function exampleWithout(variables) {
  return variables.reduce(
    (text, name) =>
      text.replace(new RegExp(`^# .+\\n#? ?${name}=.*\\n\\n?`, 'm'), ''),
    readFileSync('.env.example', 'utf8'),
  );
}

/**
 * Copies the compiled files, and the list as JavaScript.
 *
 * @param {string[]} names
 * @param {string} copy
 */
function copyCompiled(names, copy) {
  const isDeleted = (/** @type {string} */ path) =>
    foldersOf(names).some((folder) => path === join(root, 'dist', folder)) ||
    names.some((name) => path.endsWith(`/with-${name}.test.js`));
  for (const folder of ['src', 'migrations', 'test', 'packages'])
    cpSync(join(root, 'dist', folder), join(copy, 'dist', folder), {
      recursive: true,
      filter: (path) => !isDeleted(path),
    });
  const code = stripTypeScriptTypes(readFileSync(join(copy, list), 'utf8'));
  writeFileSync(
    join(copy, 'dist/src/features.js'),
    code.replaceAll(".ts'", ".js'"),
  );
}

/**
 * Does in a copy what README says: another module takes the place of the pets.
 * The tests keep them as their material.
 *
 * @param {Feature[]} features
 * @param {string[]} suites
 */
async function tryWithoutPets(features, suites) {
  const copy = mkdtempSync(join(tmpdir(), 'animal-store-without-'));
  try {
    copyTree(features, [], copy);
    replacePets(copy);
    run('node', ['bin/build.js'], copy);
    run('tsc', ['-b', '--incremental'], copy);
    compileTests(copy, ['--noCheck']);
    const { stores, env } = environments([], copy);
    const contract = join(copy, 'schema/openapi.json');
    const ofPets = readFileSync(contract);
    run('node', ['dist/src/cli.js', 'schema'], copy, stores);
    const { info, paths } = JSON.parse(readFileSync(contract, 'utf8'));
    if (info.title !== 'Toys' || `${Object.keys(paths)}`.includes('pets'))
      throw new Error(`the contract is of ${info.title}`);
    writeFileSync(contract, ofPets);
    await start(copy, stores, 'toys');
    const jest = 'node_modules/jest/bin/jest.js';
    const options = ['--config', 'test/jest.config.js', '--silent', ...suites];
    if (suites.length > 0) run('node', [jest, ...options], copy, env);
  } finally {
    rmSync(copy, { recursive: true });
  }
  print('with toys in place of pets: works');
}

/** @param {string} copy */
function replacePets(copy) {
  const modules = join(copy, 'src/modules');
  const material = join(copy, 'test/modules');
  for (const name of ['pets', 'orders'])
    renameSync(join(modules, name), join(material, name));
  cpSync(join(material, 'toys'), join(modules, 'toys'), { recursive: true });
  /** @type {Array<[folder: string, from: RegExp, to: string]>} */
  const moves = [
    ['test/modules/{pets,orders}', /'(\.\.\/\.\.\/)(?!\.\.)/g, "'$1../src/"],
    ['src/modules/toys', /'\.\.\/\.\.\/\.\.\/src\//g, "'../../"],
    ['test', /\/src\/modules\/(pets|orders)\//g, '/test/modules/$1/'],
    ['test', /\/src\/modules\/modules\.ts/g, '/test/support/modules.ts'],
  ];
  for (const [folder, from, to] of moves)
    for (const file of globSync(`${copy}/${folder}/**/*.ts`))
      writeFileSync(file, readFileSync(file, 'utf8').replace(from, to));
  const list = readFileSync(join(modules, 'modules.ts'), 'utf8');
  const ofTests = list
    .replaceAll("'./", "'../modules/")
    .replaceAll("'../api", "'../../src/api");
  writeFileSync(join(copy, 'test/support/modules.ts'), ofTests);
  const ofToys = list
    .replace(/^import \{ (?:orders|pets)Module.*\n/gm, '')
    .replace(/= \[.*\]/, '= [toysModule]');
  const path = ['.', 'toys', 'toys.module.ts'].join('/');
  const imported = `import { toysModule } from '${path}';\n`;
  writeFileSync(join(modules, 'modules.ts'), imported + ofToys);
}

/**
 * Starts the service of a copy, and calls both APIs.
 *
 * @param {string} copy
 * @param {NodeJS.ProcessEnv} env
 * @param {string} collection
 */
async function start(copy, env, collection) {
  const key = 'k'.repeat(40);
  const port = await freePort();
  const own = { BOOTSTRAP_API_KEY: key, PORT: `${port}`, LOG_LEVEL: 'error' };
  const service = spawn('node', ['dist/src/cli.js', 'start'], {
    cwd: copy,
    env: { ...env, ...own },
    stdio: 'inherit',
  });
  const origin = `http://127.0.0.1:${port}`;
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
  };
  const body = JSON.stringify({ query: `{ ${collection} { id name } }` });
  const calls = {
    [`/v1/${collection}`]: { headers },
    '/graphql': { headers, method: 'POST', body },
  };
  try {
    await isReady(service, origin);
    for (const [path, request] of Object.entries(calls)) {
      const { status } = await fetch(origin + path, request);
      if (status !== 200) throw new Error(`${path} answers ${status}`);
    }
  } finally {
    service.kill();
    if (service.exitCode === null) await once(service, 'exit');
  }
}

/**
 * @param {import('node:child_process').ChildProcess} service
 * @param {string} origin
 */
async function isReady(service, origin) {
  while (service.exitCode === null) {
    const answer = await fetch(`${origin}/readyz`).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the service does not start');
}

/** @returns {Promise<number>} */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (
    server.address()
  );
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * The environment of the service of a copy, with its store, and that of tests.
 *
 * @param {string[]} names
 * @param {string} copy
 */
function environments(names, copy) {
  const { TEST_DATABASE_URL: url, WITHOUT_STORE, ...others } = process.env;
  const env = { ...others, ANIMAL_STORE_ENV_FILE: '' };
  const stores = { ...env, DATA_DIR: WITHOUT_STORE ?? join(copy, '.data') };
  if (!names.includes(embedded)) return { env, stores };
  if (!url)
    throw new Error(
      `without ${embedded} a PostgreSQL is needed: set TEST_DATABASE_URL`,
    );
  return {
    env: { ...env, TEST_DATABASE_URL: url },
    stores: { ...env, DATABASE_URL: url },
  };
}

/**
 * @param {string} folder
 * @param {string[]} options
 */
function compileTests(folder, options) {
  run('tsc', ['-p', 'test/tsconfig.json', ...options], folder);
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {string} cwd
 * @param {NodeJS.ProcessEnv} env
 */
function run(program, args, cwd = root, env = process.env) {
  // The PATH is npm's, with the programs of the project.
  const { status } = spawnSync(program, args, { cwd, env, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} has failed`);
}

/** @param {Feature[]} features */
function printTable(features) {
  const all = globSync('{src,test,tools}/**/*.{ts,js,mjs}', {
    exclude: ['**/node_modules', '**/generated'],
  });
  const rows = features.map(({ name, variables = {} }) => {
    const own = withDependents(features, [name]);
    const others = all.filter(
      (file) => !isOf(own, file) && !wholeService.test(file),
    );
    const words = [`features/${name}/`, ...Object.keys(variables)];
    const pattern = new RegExp(`(?<![\\w])(?:${words.join('|')})(?![\\w])`);
    const named = others.filter((file) =>
      pattern.test(readFileSync(file, 'utf8')),
    );
    const [index = ''] = globSync(`src/features/${name}/index.ts`);
    const [before = ''] = readFileSync(index, 'utf8').split(/^export const /m);
    const promise = before.slice(before.lastIndexOf('/**') + 3, -3);
    return [
      name,
      promise.replace(/\s*\n?\s*\*?\s+/g, ' ').trim(),
      tokensIn(`src/features/${name}`),
      Object.keys(variables).join(' ') || '-',
      named.join(' ') || '-',
    ];
  });
  const head = ['feature', 'promise', 'tokens', 'variables', 'named elsewhere'];
  for (const cells of [head, head.map(() => '---'), ...rows])
    print(`| ${cells.join(' | ')} |`);
  if (rows.some((row) => row.at(-1) !== '-')) process.exitCode = 1;
}

/** @param {string} line */
function print(line) {
  process.stdout.write(`${line}\n`);
}

/** @param {string} folder */
function tokensIn(folder) {
  const comment = /\/\*[\s\S]*?\*\/|\/\/.*/g;
  const imported = /^import [\s\S]*?;$/gm;
  const token = /'[^'\n]*'|`[^`]*`|[\w$#]+|=>|[^\s\w]/g;
  return globSync(`${folder}/**/*.ts`)
    .map((file) => readFileSync(file, 'utf8'))
    .map((text) => text.replace(comment, '').replace(imported, ''))
    .reduce((sum, text) => sum + (text.match(token)?.length ?? 0), 0);
}
