import type pg from 'pg';
import type { Database } from '../src/database/database.ts';
import { selectByIds, selectLists } from '../src/pets/pet.statements.ts';
import { median } from './measure.ts';
import type { PetStatus } from './workloads.ts';

/** A statement of the service with the values of one call. */
export interface Call {
  text: string;
  values: unknown[];
}

export interface Wanted {
  limit: number;
  status?: PetStatus | undefined;
  after?: number | undefined;
}

export interface Explained {
  /** Median of the executions, in milliseconds. */
  milliseconds: number;
  /** Blocks read or found in the cache. */
  buffers: number;
  plan: string;
}

/** The statement that the service sends for one batch of lists, got from the service's own code. */
export function listStatement(wanted: Wanted[]): Promise<Call> {
  const queries = wanted.map(({ limit, status, after }) => ({
    limit: limit + 1,
    status,
    after: after === undefined ? undefined : BigInt(after),
  }));
  return recorded((database) => selectLists(database, queries));
}

export function findStatement(ids: number[]): Promise<Call> {
  return recorded((database) => selectByIds(database, ids.map(BigInt)));
}

/**
 * Explains and runs a statement as PostgreSQL runs prepared ones: planned for the values at hand (`custom`, the first
 * five executions) or for any values (`generic`, afterwards if that does not look dearer).
 */
export async function explain(client: pg.Client, call: Call, mode: 'custom' | 'generic'): Promise<Explained> {
  await client.query(`set plan_cache_mode = force_${mode}_plan`);
  await client.query(`prepare explained as ${call.text}`);
  try {
    const statement = `execute explained(${call.values.map((value) => literal(client, value)).join(', ')})`;
    const times: number[] = [];
    let buffers = 0;
    for (let run = 0; run < 7; run++) {
      const { rows } = await client.query(`explain (analyze, buffers, timing off, format json) ${statement}`);
      const [{ Plan: top, 'Execution Time': time }] = rows[0]['QUERY PLAN'];
      times.push(time);
      buffers = top['Shared Hit Blocks'] + top['Shared Read Blocks'];
    }
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain (analyze, buffers) ${statement}`);
    return { milliseconds: median(times), buffers, plan: rows.map((row) => row['QUERY PLAN']).join('\n') };
  } finally {
    await client.query('deallocate explained');
  }
}

/** The first statement that a piece of the service runs; no database is asked, and the piece gets no further. */
function recorded(run: (database: Database) => Promise<unknown>): Promise<Call> {
  return new Promise((resolve, reject) => {
    const recorder: Pick<Database, 'rows'> = {
      rows({ text }, values) {
        resolve({ text, values });
        return new Promise(() => undefined);
      },
    };
    run(recorder as Database).catch(reject);
  });
}

function literal(client: pg.Client, value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return client.escapeLiteral(`{${value.map((one) => one ?? 'null').join(',')}}`);
  return client.escapeLiteral(String(value));
}
