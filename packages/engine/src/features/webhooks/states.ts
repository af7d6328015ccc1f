import { Call } from '../../call.ts';
import { Database, type Statement } from '../../database/database.ts';
import { withTimeout } from '../../database/with-timeout.ts';
import { Unavailable } from '../../errors.ts';
import type { ConfiguredStore, Reading } from '../../feature.ts';

const names = ['active', 'failing', 'off'];
const statement: Statement = {
  name: 'webhook_states',
  text: `
    select count(*) filter (where failed_at is null and not is_off)::text,
      count(*) filter (where failed_at is not null and not is_off)::text,
      count(*) filter (where is_off)::text
    from webhook`,
};

export function rowsIn(
  database: Database,
  statement: Statement,
  values: unknown[] = [],
) {
  const queue = { collection: 'webhook', operation: statement.name };
  return database.inTurn(new Call(), queue, () =>
    database.rows<Array<string | null>>(statement, values),
  );
}

/** How many endpoints there are, by state. */
export async function statesIn(database: Database): Promise<Reading[]> {
  const [counts = []] = await rowsIn(database, statement);
  return counts.map((count, at) => [Number(count), `${names[at]}`]);
}

/** How long (ms) a scrape may wait for them. */
const readTimeout = 1000;

/** None before it serves, and while the database is away or late. */
export function readStates(database: Database) {
  const states = statesIn(database);
  return withTimeout(readTimeout, states, Unavailable.late).catch(() => []);
}

/** @throws Error for endpoints that are off */
export async function examineStates({ options, model }: ConfiguredStore) {
  const states = await Database.use(options, model, statesIn);
  const found = states.map(([count, state]) => `${count} ${state}`).join(', ');
  if (states[2]?.[0]) throw new Error(found);
  return found;
}
