// Compiles what has changed. `npm run build` runs this file; the launcher
// imports it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isBundled, onSupportedNode, root } from './node.js';

const dist = join(root, 'dist');
/** Its modification time is the start of the last successful build. */
const stamp = join(dist, '.built');
const compiler = join(root, 'node_modules/.bin/tsc');
const packages = existsSync(join(root, 'packages'))
  ? readdirSync(join(root, 'packages'), { withFileTypes: true }).filter((one) =>
      one.isDirectory(),
    )
  : [];
/** The folders with sources, and where their output goes. */
const folders = [
  ...['src', 'migrations'].map((name) => ({ from: name, to: `dist/${name}` })),
  ...packages.map(({ name }) => ({
    from: `packages/${name}/src`,
    to: `packages/${name}/dist`,
  })),
];
/** The sources of the build. */
const inputs = [
  ...folders.map(({ from }) => from),
  ...packages.flatMap(({ name }) => [
    `packages/${name}/package.json`,
    `packages/${name}/tsconfig.json`,
  ]),
  'tsconfig.json',
  'node_modules/.package-lock.json',
  'docs',
  'README.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'web/assets/guide.html',
  'web/assets/first-steps.md',
  'tools/guide.mjs',
  'tools/guide-code.mjs',
  'tools/guide-index.mjs',
  'tools/bundle.js',
];

/**
 * Builds if a source is newer than the last build. Concurrent processes build
 * once.
 *
 * @param {boolean} bundles whether to bundle, too: that takes as long as
 *   compiling, so the launcher does not
 * @returns {Promise<boolean>} false when the build failed; the reason was
 *   printed
 */
export async function ensureBuilt(bundles = false) {
  // The image contains neither sources nor a compiler.
  const canBuild = existsSync(join(root, 'src')) && existsSync(compiler);
  if (!canBuild && existsSync(join(dist, 'src/cli.js'))) return true;
  if (!canBuild)
    return failed(
      'nothing is built here: run `npm ci` with the development dependencies',
    );
  const isDone = () => isFresh() && (!bundles || isBundled());
  if (isDone()) return true;
  mkdirSync(dist, { recursive: true });
  const { DatabaseSync } = await import('node:sqlite');
  // Node.js has no `flock`. SQLite holds a lock on its file, and the operating
  // system releases it with the process.
  const lock = new DatabaseSync(join(dist, '.lock'), { timeout: 300_000 });
  try {
    lock.exec('begin exclusive');
    return isDone() || (await build(bundles));
  } finally {
    lock.close();
  }
}

/** @param {boolean} bundles */
async function build(bundles) {
  const began = Date.now();
  process.stderr.write('animal-store: compiling\n');
  const [forgotten] = forgottenParts();
  if (forgotten) return failed(forgotten);
  // The compiler would not write a removed file again.
  const force = existsSync(stamp) ? [] : ['--force'];
  // `tellTypeErrors` checks types: here they would take four fifths of the
  // time.
  const compiled = await run(
    compiler,
    '-b',
    root,
    '--incremental',
    '--noCheck',
    ...force,
  );
  if (!compiled) return failed('the sources do not compile');
  // CI checks types in a later step.
  if (!process.env.TYPES_LATER) tellTypeErrors();
  removeOrphans();
  const steps = [
    join(root, 'tools/guide.mjs'),
    ...(bundles ? [join(root, 'tools/bundle.js')] : []),
  ].filter(existsSync);
  if (!(await Promise.all(steps.map((step) => run(step)))).every(Boolean))
    return failed('the build has failed');
  writeFileSync(stamp, '');
  utimesSync(stamp, new Date(began), new Date(began));
  process.stderr.write(
    `${process.stderr.isTTY ? '\n' : ''}animal-store: compiled in ${((Date.now() - began) / 1000).toFixed(1)} s\n`,
  );
  return true;
}

/**
 * Modules that are not listed, and resolvers that no module hands over: the
 * service would start without them.
 */
function forgottenParts() {
  const folder = join(root, 'src');
  if (!existsSync(join(folder, 'modules.ts'))) return [];
  const textOf = (/** @type {string} */ name) =>
    readFileSync(join(folder, name), 'utf8');
  const list = textOf('modules.ts');
  const modules = readdirSync(folder, { withFileTypes: true }).filter((one) =>
    one.isDirectory(),
  );
  return modules.flatMap(({ name }) => {
    const [, exported] =
      new RegExp(`import \\{ (\\w+) \\} from '\\./${name}/`).exec(list) ?? [];
    const [, listed = ''] =
      /modules: Module\[\] = \[([^\]]*)\]/.exec(list) ?? [];
    if (!exported || !listed.split(/\W+/).includes(exported))
      return [`src/${name} is not listed in src/modules.ts`];
    const files = readdirSync(join(folder, name), {
      recursive: true,
      encoding: 'utf8',
    });
    const texts = files
      .filter((file) => file.endsWith('.ts'))
      .map((file) => textOf(join(name, file)));
    const classes =
      /^@Resolver\([\s\S]*?^(?:export )?(?:default )?(abstract )?class (\w+)/gm;
    return texts
      .flatMap((text) => [...text.matchAll(classes)])
      .filter(
        ([, isAbstract, resolver]) =>
          !isAbstract &&
          !texts.some((text) => text.includes(`new ${resolver}(`)),
      )
      .map(
        ([, , resolver]) =>
          `${resolver} is among the resolvers of no module: src/${name} does not create it`,
      );
  });
}

/** Removes the output of sources that were removed. */
function removeOrphans() {
  for (const { from, to } of folders.filter((folder) =>
    existsSync(join(root, folder.to)),
  )) {
    for (const name of readdirSync(join(root, to), {
      recursive: true,
      encoding: 'utf8',
    })) {
      const [, stem] = /^(.*)\.(?:js(?:\.map)?|d\.ts)$/.exec(name) ?? [];
      if (stem && !existsSync(join(root, from, `${stem}.ts`)))
        rmSync(join(root, to, name));
    }
  }
}

function isFresh() {
  const built = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs;
  return (
    built !== undefined &&
    existsSync(join(dist, 'src/cli.js')) &&
    !inputs.some((path) => isNewer(join(root, path)))
  );

  /** @param {string} path @returns {boolean} */
  function isNewer(path) {
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found) return false;
    // A folder's time changes when a file in it is added or removed.
    if (found.mtimeMs > /** @type {number} */ (built)) return true;
    return (
      found.isDirectory() &&
      readdirSync(path).some((name) => isNewer(join(path, name)))
    );
  }
}

/**
 * Checks types beside what follows, which does not wait for it. It outlives
 * this process.
 */
function tellTypeErrors() {
  const message = 'animal-store: these types are wrong; it runs all the same';
  const script = `"$0" "$1" -p . --noEmit --incremental --tsBuildInfoFile dist/.types || echo '${message}'`;
  /** @type {import('node:child_process').SpawnOptions} */
  const options = { cwd: root, stdio: ['ignore', 2, 2], detached: true };
  spawn('sh', ['-c', script, process.execPath, compiler], options).unref();
}

/**
 * Runs a script. Its output goes to standard error: standard output is for
 * results. A terminal shows a dot each second.
 */
async function run(/** @type {string[]} */ ...args) {
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  const sign = setInterval(
    () => process.stderr.isTTY && process.stderr.write('.'),
    1000,
  );
  const [code] = await once(child, 'close').finally(() => clearInterval(sign));
  return code === 0;
}

function failed(/** @type {string} */ reason) {
  process.stderr.write(`animal-store: ${reason}\n`);
  process.exitCode = 1;
  return false;
}

if (process.argv[1] === join(root, 'bin/build.js'))
  onSupportedNode(() => ensureBuilt(true));
