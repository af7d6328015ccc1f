import type { MikroORM } from '@mikro-orm/postgresql';
import type { RunStatement } from './postgres-server.ts';

/**
 * Whether the database makes letters lower case as `C.UTF-8` does. Indexes use
 * its `lower`, and no collation exists on every server.
 */
const probe = {
  name: 'locale',
  text: `
    select lower('ÄİIΟΔΟΣ') = 'äiiοδοσ', datctype
    from pg_database
    where datname = current_database()`,
};

export const otherLocale =
  'texts are sorted and found otherwise than in other stores';
export const localeRemedy =
  'create the database with the locale C.UTF-8, and move the data: docs/move.md';

/** @returns undefined where there is none */
export async function localeDifference(rows: RunStatement) {
  const [[isSame, type] = []] = await rows(probe, []);
  if (isSame === 't') return undefined;
  return `The locale of the database (${type}, or ICU's) has other lower case letters than C.UTF-8.`;
}

/** An index on lower case belongs to lists that are sorted by texts. */
export function sortsTexts(orm: MikroORM) {
  const entities = [...orm.getMetadata().getAll().values()];
  const indexes = entities.flatMap((entity) => entity.indexes);
  return indexes.some(({ expression }) => /\blower\(/.test(`${expression}`));
}
