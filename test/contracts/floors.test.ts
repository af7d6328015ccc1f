import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from '../support/jest.ts';

/** The floors of `src/`, from top to bottom. A file imports its own floor and those below it, and the packages. */
const floors = {
  composition:
    /^(main|cli|prepare|serve|supervise|contracts|app|modules|mikro-orm\.config|prepared-store|start-failure|version)\.ts|^commands\//,
  config: /^config\//,
  module: /^module\.ts/,
  api: /^api\//,
  access: /^access\//,
  storage: /^storage\//,
  timeouts: /^runtime\/with-timeout\.ts/,
  runtime: /^runtime\//,
  errors: /^(errors|deadline)\.ts/,
  database: /^(database|backup)\//,
};
const order = [
  'composition',
  'config',
  'domain',
  'module',
  'api',
  'access',
  'storage',
  'runtime',
  'errors',
  'database',
  'timeouts',
];
/** Each other folder is a module of the domain. */
const floorOf = (file: string) => Object.entries(floors).find(([, files]) => files.test(file))?.[0] ?? 'domain';

/** What a kind of file never imports: another file, or a package by its name. */
const rules: Array<[files: RegExp, imported: RegExp, reason: string]> = [
  [
    /(service|entity)\.ts$|^storage\//,
    /^(fastify|@fastify\/.*|graphql|type-graphql|@apollo\/.*)$|^api\//,
    'a service knows neither API',
  ],
  [
    /\.(routes|resolver|types|schemas)\.ts$/,
    /^(@mikro-orm\/.*|pg)$|^database\/|^storage\/records\//,
    'an adapter calls the service',
  ],
];

/** The circles of folders that wait to be undone. */
const known = ['api/http', 'api/pages', 'api/rest'];

function importsOf(file: string, root: string): string[] {
  const names = [...readFileSync(join(root, file), 'utf8').matchAll(/(?:\bfrom |^import |\bimport\()'([^']+)'/gm)];
  return names.map(([, name = '']) => (name.startsWith('.') ? join(dirname(file), name) : name));
}
const graphOf = (root: string, pattern: string) =>
  new Map(globSync(pattern, { cwd: root }).map((file) => [file, importsOf(file, root)]));

/** The nodes that reach themselves. */
function circles(graph: Map<string, string[]>): string[] {
  const reached = (from: string, seen = new Set<string>()) => {
    for (const to of graph.get(from) ?? []) if (!seen.has(to)) reached(to, seen.add(to));
    return seen;
  };
  return [...graph.keys()].filter((node) => reached(node).has(node)).sort();
}

const service = graphOf('src', '**/*.ts');

test('a file of the service imports its own floor and those below it', () => {
  const modules = [...graphOf('test/modules', '*/*.ts')].map(([file, all]): [string, string[]] => [
    file,
    all.map((name) => name.replace(/^\.\.\/\.\.\/src\//, '')),
  ]);
  const wrong = [...service, ...modules].flatMap(([file, all]) =>
    all.flatMap((name) => {
      const upwards = name.endsWith('.ts') && order.indexOf(floorOf(name)) < order.indexOf(floorOf(file));
      const floor = `${floorOf(name)} is above ${floorOf(file)}`;
      const broken = rules.filter(([files, imported]) => files.test(file) && imported.test(name));
      return [...(upwards ? [floor] : []), ...broken.map(([, , reason]) => reason)].map(
        (why) => `${file} -> ${name}: ${why}`,
      );
    }),
  );
  expect(wrong).toEqual([]);
});

test('there is no circle of files, and no unknown one of folders', () => {
  expect(circles(service)).toEqual([]);
  const folders = new Map<string, string[]>();
  for (const [file, all] of service) {
    const own = dirname(file);
    const others = all.filter((name) => name.endsWith('.ts')).map((name) => dirname(name));
    folders.set(own, [
      ...(folders.get(own) ?? []),
      ...others.filter((other) => other !== own && own !== '.' && other !== '.'),
    ]);
  }
  expect(circles(folders)).toEqual(known);
});

test.each(globSync('packages/*/package.json'))(
  '%s declares what the package imports, and nothing of the service',
  (path) => {
    const { name: own, dependencies, peerDependencies, devDependencies } = JSON.parse(readFileSync(path, 'utf8'));
    const declared = (file: string) =>
      Object.keys({
        ...dependencies,
        ...peerDependencies,
        ...(file.startsWith('test') && { ...devDependencies, [own]: own }),
      });
    const wrong = [...graphOf(dirname(path), '{src,test}/*.ts')].flatMap(([file, all]) =>
      all
        .filter((name) => !name.startsWith('node:') && !declared(file).some((one) => `${name}/`.startsWith(`${one}/`)))
        .filter((name) => dirname(name) !== dirname(file))
        .map((name) => `${basename(dirname(path))}/${file} -> ${name}`),
    );
    expect(wrong).toEqual([]);
  },
);
