// runs: postgres, postgres-18

import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { modules } from '../../src/modules.ts';
import { odds } from '../modules/odds/odds.module.ts';
import { optionsFor } from '../support/database.ts';
import { expect, test } from '../support/jest.ts';
import { onPlainPostgres } from '../support/process.ts';
import { query } from '../support/session.ts';

/** What a start says about the locale of a database. */

const server = `${process.env.TEST_DATABASE_URL}`;
const icu = "locale 'C.UTF-8' locale_provider icu icu_locale";

(onPlainPostgres ? test : test.skip).each([
  ["locale 'C.UTF-8'", [odds], false],
  ["locale 'C'", [odds], true],
  [`${icu} 'tr-TR'`, [odds], true],
  [`${icu} 'de-DE'`, [odds], true],
  // The animals are sorted by ids only.
  ["locale 'C'", [], false],
])('%s', async (locale, more, isOther) => {
  const name = `animal_store_locale_${Math.random().toString(36).slice(2)}`;
  await query(
    server,
    `create database ${name} encoding 'UTF8' template template0 ${locale}`,
  );
  const url = new URL(server);
  url.pathname = name;
  const lines: unknown[] = [];
  const line = (fields: object, message: string) =>
    lines.push({ message, ...fields });
  const log = { info: () => undefined, warn: line };
  const database = await Database.open(
    { ...(await optionsFor({ DATABASE_URL: url.href })), log: log as never },
    modelOf([...modules, ...more]),
  );
  try {
    await database.migrate();
  } finally {
    await database.close();
    await query(server, `drop database ${name}`);
  }
  const warning = {
    message: 'texts are sorted and found otherwise than in other stores',
    difference: expect.stringContaining('lower case letters than C.UTF-8'),
    remedy: expect.stringContaining('docs/move.md'),
  };
  expect(lines).toEqual(isOther ? [warning] : []);
});
