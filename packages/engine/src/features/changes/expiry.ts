import type { Database, Statement } from '../../database/database.ts';

const maxRows = 1000;

/**
 * The oldest are the first ones, so this needs no index on the time. The last
 * old one stays: those after it are whole, whatever positions were rolled back.
 */
const removeOld: Statement = {
  name: 'remove_old_changes',
  isWrite: true,
  text: `
    delete from change where id in (
      select id from (
        select id, lead(at) over (order by id) as next
        from change order by id limit ${maxRows}) as first
      where next < now() - make_interval(days => $1::int))
    returning id::text`,
};

/**
 * Removes the oldest changes, at most 1,000, of those older than `days`.
 *
 * @returns whether there may be more
 */
export async function removeOldChanges(
  database: Pick<Database, 'rows'>,
  days: number,
) {
  const removed = await database.rows(removeOld, [days]);
  return removed.length === maxRows;
}
