import { MikroORM } from '@mikro-orm/postgresql';
import type pg from 'pg';
import { Batches } from '#engine/database/batches.js';
import type { Database } from '#engine/database/database.js';
import { Records } from '#engine/records/records.js';
import { PetEntity } from '../src/pets/pet.entity.ts';
import type { NewPet, Pet } from '../src/pets/pet.schemas.ts';
import { median } from './measure.ts';
import type { PetStatus } from './workloads.ts';

/** A statement of the service with its parameter values. */
export interface Call {
  text: string;
  values: unknown[];
}

export interface ListQuery {
  limit: number;
  status?: PetStatus | undefined;
  after?: number | undefined;
}

export interface Explained {
  /** Median execution time. */
  milliseconds: number;
  /** Blocks read from the cache or the disk. */
  buffers: number;
  plan: string;
}

/**
 * The statement that the service's own code generates for one batch of lists.
 */
export function listStatement(queries: ListQuery[]): Promise<Call> {
  return recordStatement((pets) =>
    queries.map((query) => pets.list(query as never)),
  );
}

export function findStatement(ids: number[]): Promise<Call> {
  return recordStatement((pets) => ids.map((id) => pets.find(id)));
}

/**
 * Explains and runs a prepared statement. PostgreSQL plans the first five
 * executions for their values (`custom`). Later it uses one plan for all values
 * (`generic`), if its estimated cost is not higher.
 */
export async function explain(
  client: pg.Client,
  call: Call,
  mode: 'custom' | 'generic',
): Promise<Explained> {
  await client.query(`set plan_cache_mode = force_${mode}_plan`);
  await client.query(`prepare explained as ${call.text}`);
  try {
    const statement = `execute explained(${call.values.map((value) => literal(client, value)).join(', ')})`;
    const times: number[] = [];
    let buffers = 0;
    for (let run = 0; run < 7; run++) {
      const { rows } = await client.query(
        `explain (analyze, buffers, timing off, format json) ${statement}`,
      );
      const [{ Plan: top, 'Execution Time': time }] = rows[0]['QUERY PLAN'];
      times.push(time);
      buffers = top['Shared Hit Blocks'] + top['Shared Read Blocks'];
    }
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain (analyze, buffers) ${statement}`,
    );
    return {
      milliseconds: median(times),
      buffers,
      plan: rows.map((row) => row['QUERY PLAN']).join('\n'),
    };
  } finally {
    await client.query('deallocate explained');
  }
}

type Pets = Records<Pet, NewPet>;

/**
 * Records the first statement that the service generates for concurrent calls.
 * The calls never return, and need no database.
 */
function recordStatement(
  call: (pets: Pets) => Promise<unknown>[],
): Promise<Call> {
  const orm = new MikroORM({ entities: [PetEntity], dbName: 'none' });
  return new Promise((resolve) => {
    const record = ({ text }: { text: string }, values: unknown[]) => {
      resolve({ text, values });
      return new Promise(() => undefined);
    };
    const database = {
      orm,
      model: {},
      referred: new Map(),
      isSharded: async () => false,
      read: record,
      rows: record,
      batched: (run: never, options: object) =>
        new Batches(run, {
          ...options,
          maxWaiting: 100,
          maxAge: 1000,
        } as never),
    };
    call(
      new Records<Pet, NewPet>(database as unknown as Database, PetEntity, {
        filters: ['status'],
      }),
    );
  });
}

function literal(client: pg.Client, value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value))
    return client.escapeLiteral(
      `{${value.map((one) => one ?? 'null').join(',')}}`,
    );
  return client.escapeLiteral(String(value));
}
