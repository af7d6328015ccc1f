import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { newFolder } from '../../support/folder.ts';
import {
  afterAll,
  afterEach,
  beforeAll,
  expect,
  test,
} from '../../support/jest.ts';
import {
  type Env,
  eventually,
  isRunning,
  killAll,
  runCommand,
} from '../../support/process.ts';

/**
 * The real launcher and compiler, with one of the packages and a program of a
 * few lines.
 */
let folder: string;
beforeAll(async () => {
  folder = await newFolder();
  const references = [{ path: 'packages/exact-json' }];
  for (const path of [
    'bin',
    'package.json',
    ...references.map((one) => one.path),
  ])
    cpSync(path, join(folder, path), { recursive: true });
  const options = JSON.parse(readFileSync('tsconfig.json', 'utf8'));
  write('tsconfig.json', JSON.stringify({ ...options, references }));
  for (const path of ['src', 'migrations', 'tools'])
    mkdirSync(join(folder, path));
  write('tools/guide.mjs', 'console.error("rendered");\n');
  write('src/word.ts', 'export const word: string = "one";\n');
  write(
    'src/cli.ts',
    'import { word } from "./word.ts";\nconsole.log(word, ...process.argv.slice(2));\n',
  );
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
});
afterEach(killAll);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const write = (path: string, text: string) =>
  writeFileSync(join(folder, path), text);

/** @param nodeOptions options of Node.js itself */
function start(
  args: string[],
  { env = {}, nodeOptions = [] }: { env?: Env; nodeOptions?: string[] } = {},
) {
  const command = [
    process.execPath,
    ...nodeOptions,
    join(folder, 'bin/animal-store.js'),
    ...args,
  ];
  return runCommand(command, { PATH: '/usr/bin:/bin', HOME: folder, ...env });
}

const launch = (...args: string[]) => start(args).ended;
const withoutMessages = (stdout: string) => ({
  code: 0,
  signal: null,
  stdout,
  stderr: '',
});
const compiled = expect.stringMatching(
  /^animal-store: compiling\nrendered\nanimal-store: compiled in [\d.]+ s\n$/,
);

test('of two launchers on a fresh clone one compiles, and both run; a later one does not compile', async () => {
  const both = await Promise.all([launch('a'), launch('b')]);
  expect(both.map(({ code, stdout }) => ({ code, stdout }))).toEqual([
    { code: 0, stdout: 'one a\n' },
    { code: 0, stdout: 'one b\n' },
  ]);
  expect(both.map(({ stderr }) => stderr).join('')).toEqual(compiled);
  expect(await launch('keys', 'list')).toEqual(
    withoutMessages('one keys list\n'),
  );
});

test('a changed, added or removed source is compiled before the program runs', async () => {
  const changes: Array<[() => void, string]> = [
    [
      () => write('src/word.ts', 'export const word: string = "two";\n'),
      'two\n',
    ],
    [() => write('src/more.ts', 'export const more = 1;\n'), 'two\n'],
    [() => rmSync(join(folder, 'src/more.ts')), 'two\n'],
  ];
  for (const [change, stdout] of changes) {
    change();
    expect(await launch()).toEqual({
      code: 0,
      signal: null,
      stdout,
      stderr: compiled,
    });
    expect(await launch()).toEqual(withoutMessages(stdout));
    expect(existsSync(join(folder, 'dist/src/more.js'))).toBe(
      existsSync(join(folder, 'src/more.ts')),
    );
  }
});

test('it refuses a module that is not listed, and a resolver that no module creates', async () => {
  mkdirSync(join(folder, 'src/visits/rules'), { recursive: true });
  write('src/modules.ts', '');
  write(
    'src/visits/rules/visit.resolver.ts',
    `@Resolver()
export abstract class AbstractResolver {}
export class Options {}
@Resolver(() => VisitType)
export class VisitResolver {}
`,
  );
  write('src/visits/visits.module.ts', '');
  const refusal = (reason: string) => ({
    code: 1,
    stderr: `animal-store: compiling\nanimal-store: ${reason}\n`,
  });
  expect(await launch()).toMatchObject(
    refusal('src/visits is not listed in src/modules.ts'),
  );
  const imported = `import { visits } from './visits/visits.module.ts';\n`;
  write('src/modules.ts', `${imported}export const modules: Module[] = [];\n`);
  expect(await launch()).toMatchObject(
    refusal('src/visits is not listed in src/modules.ts'),
  );
  write(
    'src/modules.ts',
    `${imported}export const modules: Module[] = [visits];\n`,
  );
  const reason =
    'VisitResolver is among the resolvers of no module: src/visits does not create it';
  expect(await launch()).toMatchObject(refusal(reason));
  write('src/visits/visits.module.ts', '// new VisitResolver()\n');
  write('src/visits/rules/visit.resolver.ts', '');
  expect(await launch()).toMatchObject({ code: 0 });
  rmSync(join(folder, 'src/modules.ts'));
  rmSync(join(folder, 'src/visits'), { recursive: true });
  expect(await launch()).toMatchObject({ code: 0 });
});

test('it runs the bundle until a source changes', async () => {
  mkdirSync(join(folder, 'dist/bundle'));
  write('dist/bundle/cli.js', 'console.log("bundled");\n');
  expect(await launch()).toEqual(withoutMessages('bundled\n'));
  write('src/word.ts', 'export const word: string = "two";\n');
  expect(await launch()).toEqual({
    code: 0,
    signal: null,
    stdout: 'two\n',
    stderr: compiled,
  });
});

test('with sources that do not compile no program runs, not even the previous build; corrected sources run, also after a killed build', async () => {
  write('src/word.ts', 'export const word: string = "three;\n');
  for (const ended of [await launch(), await launch()]) {
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain('src/word.ts(1,36): error TS1002:');
    expect(ended.stderr).toMatch(
      /\nanimal-store: the sources do not compile\n$/,
    );
  }
  write('src/word.ts', 'export const word: string = "three";\n');
  expect(await launch()).toMatchObject({ code: 0, stdout: 'three\n' });
  rmSync(join(folder, 'dist/.built'));
  write('dist/src/word.js', 'half of a fi');
  expect(await launch()).toMatchObject({ code: 0, stdout: 'three\n' });
});

test('wrong types are named beside the program, which runs all the same', async () => {
  write('src/word.ts', 'export const word: number = "four";\n');
  const { code, stdout, stderr } = await launch();
  expect([code, stdout]).toEqual([0, 'four\n']);
  expect(stderr).toContain('src/word.ts(1,14): error TS2322:');
  expect(stderr).toMatch(/\nanimal-store: these types are wrong; it runs/);
  write('src/word.ts', 'export const word: string = "three";\n');
  expect(await launch()).toMatchObject({ code: 0, stdout: 'three\n' });
});

/**
 * Options that make Node.js report an older version; its child processes report
 * the real one.
 */
const old = [
  '--import',
  'data:text/javascript,Object.defineProperty(process.versions, "node", { value: "20.20.2" })',
];

test('an older Node.js, and npm, start the Node.js in node_modules with arguments, environment and signals, and take over its exit', async () => {
  write(
    'src/cli.ts',
    'process.on("SIGTERM", () => process.exit(7));\nif (process.argv[2] !== "keys") setInterval(() => {}, 1000);\n' +
      'console.log(process.argv.slice(2).join(), process.versions.node, process.env.WORD);\n',
  );
  const env = {
    WORD: 'hello',
    PATH: [dirname(process.execPath), process.env.PATH].join(':'),
  };
  const npm = (...args: string[]) =>
    runCommand(['npm', '--silent', '--prefix', folder, ...args], {
      ...env,
      HOME: folder,
      NODE_ENV: 'production',
    });
  const printed = (args: string) => `${args} ${process.versions.node} hello\n`;
  for (const [running, args, signal, end] of [
    [
      start(['a', 'b c'], { env, nodeOptions: old }),
      'a,b c',
      'SIGTERM',
      { code: 7, signal: null },
    ],
    [
      start(['a'], { env, nodeOptions: old }),
      'a',
      'SIGHUP',
      { code: null, signal: 'SIGHUP' },
    ],
    [
      npm('start', '--', 'b c'),
      'start,b c',
      'SIGTERM',
      { code: 7, signal: null },
    ],
  ] as const) {
    await eventually(async () => running.output.stdout.includes('\n'));
    running.child.kill(signal);
    expect(await running.ended).toMatchObject({
      ...end,
      stdout: printed(args),
    });
  }
  expect(await npm('run', 'store', '--', 'keys', 'list').ended).toEqual(
    withoutMessages(printed('keys,list')),
  );
});

test('the service ends with a launcher that is killed', async () => {
  write(
    'src/cli.ts',
    'process.on("SIGTERM", () => process.exit(7));\nsetInterval(() => {}, 1000);\nconsole.log(process.pid);\n',
  );
  const launcher = start(['start'], { nodeOptions: old });
  const { output, child } = launcher;
  await eventually(async () => output.stdout.includes('\n'));
  const service = Number(output.stdout);
  expect(service).not.toBe(child.pid);
  expect(isRunning(service)).toBe(true);
  child.kill('SIGKILL');
  await eventually(async () => !isRunning(service));
});

test('without packages it runs the existing build; without a newer Node.js or a build it names the requirement', async () => {
  write('src/cli.ts', 'console.log("four");\n');
  expect(await launch()).toMatchObject({ code: 0, stdout: 'four\n' });
  rmSync(join(folder, 'node_modules'));
  expect(await launch()).toEqual(withoutMessages('four\n'));
  const line = (text: RegExp) => ({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(text),
  });
  expect(await start(['start'], { nodeOptions: old }).ended).toMatchObject(
    line(
      /^animal-store: Node\.js 24 or later is needed, and this is v\S+\. [^\n]*\n$/,
    ),
  );
  rmSync(join(folder, 'dist'), { recursive: true });
  expect(await launch()).toMatchObject(
    line(/^animal-store: nothing is built here: run `npm ci` [^\n]*\n$/),
  );
});

test('npm links it as an executable file that the Node.js of the PATH runs', () => {
  const { bin } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  );
  expect(bin).toEqual({ 'animal-store': 'bin/animal-store.js' });
  expect(statSync('bin/animal-store.js').mode & 0o111).toBe(0o111);
  expect(readFileSync('bin/animal-store.js', 'utf8')).toMatch(
    /^#!\/usr\/bin\/env node\n/,
  );
});
