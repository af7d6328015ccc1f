import { MikroORM } from '@mikro-orm/postgresql';
import type pg from 'pg';
import { Batches } from '../packages/postgres/src/batches.ts';
import type { Database } from '../packages/postgres/src/database.ts';
import { type Pet, PetEntity } from '../src/pets/pet.entity.ts';
import type { NewPet } from '../src/pets/pet.schemas.ts';
import { Records } from '../src/storage/records/records.ts';
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

/** The statement that the service sends for one batch of lists, got from the service itself. */
export function listStatement(wanted: Wanted[]): Promise<Call> {
  return recorded((pets) => wanted.map((query) => pets.list(query)));
}

export function findStatement(ids: number[]): Promise<Call> {
  return recorded((pets) => ids.map((id) => pets.find(id)));
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

type Pets = Records<Pet, NewPet>;

/** The first statement that the service sends for what is asked at once; no database is asked, and nothing answered. */
function recorded(ask: (pets: Pets) => Promise<unknown>[]): Promise<Call> {
  const orm = new MikroORM({ entities: [PetEntity], dbName: 'none' });
  return new Promise((resolve) => {
    const database = {
      orm,
      rows({ text }: { text: string }, values: unknown[]) {
        resolve({ text, values });
        return new Promise(() => undefined);
      },
      batched: (run: never, options: object) =>
        new Batches(run, { ...options, maxWaiting: 100, maxAge: 1000 } as never),
    };
    ask(new Records<Pet, NewPet>(database as unknown as Database, PetEntity, 'status'));
  });
}

function literal(client: pg.Client, value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return client.escapeLiteral(`{${value.map((one) => one ?? 'null').join(',')}}`);
  return client.escapeLiteral(String(value));
}
