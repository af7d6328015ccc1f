import { existsSync, readFileSync } from 'node:fs';
import { buildSchema, parse, validate } from 'graphql';
import { parseAllDocuments } from 'yaml';
import {
  afterAll,
  beforeAll,
  describe,
  expect,
  test,
} from '../../support/jest.ts';
import { killAll, onPostgres } from '../../support/process.ts';
import { type Block, blocksOf, nameOf, pages } from './blocks.ts';
import { commandsIn } from './commands.ts';
import { exceptions, optional } from './exceptions.ts';
import { Session } from './session.ts';

/**
 * Every fenced block of the pages is run, in the order of its page, on a new
 * store of that page, or checked as far as its language allows. exceptions.ts
 * lists the blocks that cannot run here, with the reason.
 */

const schema = buildSchema(readFileSync('schema/schema.graphql', 'utf8'));

const onEmbedded = onPostgres ? describe.skip : describe;

const isListed = ({ page, text }: Block) =>
  exceptions.some(
    ([of, _why, ...beginnings]) =>
      of === page && beginnings.some((start) => text.startsWith(start)),
  );
const folders = (process.env.PATH ?? '').split(':');
const missing = optional.filter(
  (program) => !folders.some((folder) => existsSync(`${folder}/${program}`)),
);
const needs = ({ language, text }: Block) =>
  language === 'sh'
    ? missing.filter((program) => new RegExp(`\\b${program} `).test(text))
    : [];

/** Checks of languages that are not run. */
const parsed: Record<string, (text: string) => unknown> = {
  json: JSON.parse,
  // GitHub renders it; links.test.ts checks the files that it names.
  mermaid: (text) => expect(text).toMatch(/^flowchart (?:TB|LR)\n/),
  yaml: (text) =>
    parseAllDocuments(text).flatMap(({ errors }) =>
      errors.map((error) => expect(error).toBeUndefined()),
    ),
};

/** A page says `npm start    # with NAME=value`. */
const started = /^npm start +# with (\w+)=(\w+)$/gm;
const settings = pages.flatMap((page) =>
  [...readFileSync(page, 'utf8').matchAll(started)].map(([, name, value]) => [
    name,
    value,
  ]),
);

let reader: Session;
beforeAll(async () => {
  if (!onPostgres) reader = await Session.begin(Object.fromEntries(settings));
});
afterAll(async () => {
  await reader?.end();
  await killAll();
});

onEmbedded.each(pages.map((page) => [page, blocksOf(page)] as const))(
  '%s',
  (_page, blocks) => {
    if (blocks.length === 0) return;
    beforeAll(() => reader.turnPage());

    for (const [at, block] of blocks.entries()) {
      if (isListed(block)) continue;
      const without = needs(block);
      const run = without.length > 0 ? test.skip : test;
      run(
        `${nameOf(block)}${without.map((program) => ` (skipped: there is no ${program})`)}`,
        async () => {
          const { language, text } = block;
          if (language === 'sh') {
            await reader.run(commandsIn(text));
          } else if (language === 'js' || language === 'ts') {
            const [shown] = /(?:^\/\/ .*\n)+$/m.exec(text) ?? [];
            await reader.runFile(
              text,
              language === 'js' ? 'mjs' : 'mts',
              shown?.replaceAll(/^\/\/ /gm, ''),
            );
          } else if (language === 'graphql') {
            expect(validate(schema, parse(text))).toEqual([]);
            const next = blocks[at + 1];
            const variables =
              next?.language === 'json' ? JSON.parse(next.text) : {};
            await reader.query(text, variables);
          } else if (language === '') await reader.expectOutput(text);
          else {
            const check = parsed[language];
            if (!check)
              throw new Error(
                `There is no check for ${language}: add one, or list the block in exceptions.ts.`,
              );
            check(text);
          }
        },
      );
    }
  },
);

test.each(exceptions)(
  'the blocks of %s that are listed as not run exist: %s',
  (page, _why, ...beginnings) => {
    const texts = blocksOf(page).map(({ text }) => text);
    expect(
      beginnings.filter(
        (start) => !texts.some((text) => text.startsWith(start)),
      ),
    ).toEqual([]);
  },
);
