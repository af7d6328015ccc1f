import { existsSync, readFileSync } from 'node:fs';
import { buildSchema, parse, validate } from 'graphql';
import { parseAllDocuments } from 'yaml';
import { afterAll, beforeAll, describe, expect, test } from '../../support/jest.ts';
import { killAll, onPostgres } from '../../support/process.ts';
import { type Block, blocksOf, nameOf, pages } from './blocks.ts';
import { commandsIn } from './commands.ts';
import { exceptions, optional } from './exceptions.ts';
import { Session } from './session.ts';

/**
 * Every fenced block of the pages is run, in the order of its page, on a new store of that page, or checked by what its
 * language allows. What cannot be run here is listed in exceptions.ts, with the reason.
 */

const schema = buildSchema(readFileSync('schema/schema.graphql', 'utf8'));

const onEmbedded = onPostgres ? describe.skip : describe;

const isListed = ({ page, text }: Block) =>
  exceptions.some(([of, _why, ...beginnings]) => of === page && beginnings.some((start) => text.startsWith(start)));
const folders = (process.env.PATH ?? '').split(':');
const missing = optional.filter((program) => !folders.some((folder) => existsSync(`${folder}/${program}`)));
const needs = ({ language, text }: Block) =>
  language === 'sh' ? missing.filter((program) => new RegExp(`\\b${program} `).test(text)) : [];

/** Languages of what is looked at, and not run. */
const parsed: Record<string, (text: string) => unknown> = {
  json: JSON.parse,
  // GitHub draws it; a file that it names is looked for by links.test.ts.
  mermaid: (text) => expect(text).toMatch(/^flowchart (?:TB|LR)\n/),
  yaml: (text) => parseAllDocuments(text).flatMap(({ errors }) => errors.map((error) => expect(error).toBeUndefined())),
};

let reader: Session;
beforeAll(async () => {
  if (!onPostgres) reader = await Session.begin();
});
afterAll(async () => {
  await reader?.end();
  await killAll();
});

onEmbedded.each(pages.map((page) => [page, blocksOf(page)] as const))('%s', (_page, blocks) => {
  if (blocks.length === 0) return;
  beforeAll(() => reader.turnPage());

  for (const [at, block] of blocks.entries()) {
    if (isListed(block)) continue;
    const without = needs(block);
    const run = without.length > 0 ? test.skip : test;
    run(`${nameOf(block)}${without.map((program) => ` (skipped: there is no ${program})`)}`, async () => {
      const { language, text } = block;
      if (language === 'sh') {
        await reader.run(commandsIn(text));
      } else if (language === 'js' || language === 'ts') {
        const [shown] = /(?:^\/\/ .*\n)+$/m.exec(text) ?? [];
        await reader.runFile(text, language === 'js' ? 'mjs' : 'mts', shown?.replaceAll(/^\/\/ /gm, ''));
      } else if (language === 'graphql') {
        expect(validate(schema, parse(text))).toEqual([]);
        const next = blocks[at + 1];
        const variables = next?.language === 'json' ? JSON.parse(next.text) : {};
        await reader.ask(text, variables);
      } else if (language === '') await reader.shows(text);
      else {
        const check = parsed[language];
        if (!check) throw new Error(`Nobody knows how to check ${language}: list it in exceptions.ts, or say how.`);
        check(text);
      }
    });
  }
});

test.each(exceptions)('what is listed of %s as not run is there: %s', (page, _why, ...beginnings) => {
  const texts = blocksOf(page).map(({ text }) => text);
  expect(beginnings.filter((start) => !texts.some((text) => text.startsWith(start)))).toEqual([]);
});
