import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { Marked } from 'marked';
import { getHeadingList, gfmHeadingId } from 'marked-gfm-heading-id';
import { expect, test } from '../../support/jest.ts';
import { pages } from './blocks.ts';

/**
 * Links between pages, to headings and to files of the repository, and the
 * names of files in the text.
 */

const linked = [...pages, 'CHANGELOG.md'];
const texts = new Map(linked.map((page) => [page, readFileSync(page, 'utf8')]));
const prose = (page: string) =>
  texts.get(page)?.replaceAll(/^ {0,3}```[\s\S]*?^ {0,3}```$/gm, '') ?? '';

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(path: string): string[] {
  new Marked(gfmHeadingId()).parse(readFileSync(path, 'utf8'));
  return getHeadingList().map(({ id }) => id);
}

/** The links and pictures of a page in the repository. */
const linksOf = (page: string) =>
  [...prose(page).matchAll(/(?:\]\(|\bsrc(?:set)?=")([^)"\s]+)[)"]/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path, anchor] = target.split('#');
      return {
        target,
        file: path ? normalize(join(dirname(page), path)) : page,
        anchor,
      };
    });

test.each(linked)('every link of %s has a target', (page) => {
  const broken = linksOf(page).filter(
    ({ file, anchor }) =>
      !existsSync(file) ||
      (anchor !== undefined && !anchorsOf(file).includes(anchor)),
  );
  expect(broken).toEqual([]);
});

/**
 * Files in examples that a reader creates, or that a program creates when it
 * runs.
 */
const createdByReaders =
  /^(?:dist|src\/toys|node_modules)\/|^src\/\*|features\/(?:NAME|region)|\.\.\.|\*/;

test.each(linked)(
  'every file of the repository that %s names exists',
  (page) => {
    const named = [
      ...prose(page).matchAll(
        /`((?:src|test|docs|schema|migrations|operations|web|bin|bench|dist)\/[\w./*-]+)`/g,
      ),
    ];
    const missing = named
      .map(([, path = '']) => path)
      .filter(
        (path) =>
          !createdByReaders.test(path) &&
          !existsSync(path) &&
          !existsSync(`${path}.ts`),
      );
    expect(missing).toEqual([]);
  },
);

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));

test.each(pages.filter((page) => page !== 'examples/react/README.md'))(
  'every npm script that %s names exists',
  (page) => {
    const named = [
      ...readFileSync(page, 'utf8').matchAll(
        /\bnpm run (?:--silent )?([a-z][\w:]*)/g,
      ),
    ];
    const missing = named
      .map(([, name = '']) => name)
      .filter((name) => !(name in scripts));
    expect(missing).toEqual([]);
  },
);

test('README.md links to every page, or examples/README.md does', () => {
  const reached = ['README.md', 'examples/README.md']
    .flatMap(linksOf)
    .map(({ file }) => file);
  expect(
    pages.filter((page) => page !== 'README.md' && !reached.includes(page)),
  ).toEqual([]);
});

test('docs/develop.md names source files by unique names, with functions that exist in them', () => {
  const sources = globSync([
    'src/**/*.ts',
    'packages/*/src/**/*.ts',
    'clients/typescript/src/*.ts',
  ]);
  const wrong: string[] = [];
  for (const [, name = '', functions = ''] of prose('docs/develop.md').matchAll(
    /`([\w./-]+\.ts)`((?:, `#?\w+`)*)/g,
  )) {
    if (createdByReaders.test(name)) continue;
    const [file, ...others] = sources.filter((path) =>
      `/${path}`.endsWith(`/${name}`),
    );
    const words: string[] =
      (file && readFileSync(file, 'utf8').match(/#?\w+/g)) || [];
    const missing = [...functions.matchAll(/#?\w+/g)].filter(
      ([word]) => !words.includes(word),
    );
    if (!file || others.length > 0 || missing.length > 0)
      wrong.push(`${name}${functions}`);
  }
  expect(wrong).toEqual([]);
});
