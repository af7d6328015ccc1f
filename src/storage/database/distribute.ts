import { citusNode } from './citus.ts';
import type { Database } from './database.ts';
import type { Model } from './options.ts';

/** Whole on every node, or by id over this many shards. */
export type Layout = 'reference' | number;

/** A table, what it shall be and what it is: `layout` is null while it is an ordinary table. */
interface Placed {
  name: string;
  wanted: Layout;
  layout: Layout | null;
}

/**
 * Turns the modules' tables into tables of a Citus cluster as `layout` says, and the shared ones into reference tables.
 * A table stays readable meanwhile; writes to it wait. What is done already stays as it is.
 *
 * @returns a line for each table
 * @throws Error without Citus, or when a table is distributed in another way: then none is distributed
 */
export async function distribute(database: Database, model: Model, layout: Layout): Promise<string[]> {
  const node = await citusNode((statement, values) => database.rows(statement, values));
  if (node === 'none') throw new Error('There is no Citus in this database (`create extension citus`, on every node).');
  await database.migrate();
  return database.exclusively(async () => {
    const tables = await placed(database, model, layout);
    const refusals = tables.filter(({ wanted, layout }) => layout !== null && layout !== wanted).map(refusal);
    if (refusals.length > 0) throw new Error(refusals.join('\n'));
    const lines: string[] = [];
    for (const table of tables) {
      if (table.layout === null) await place(database, table);
      lines.push(`${table.name}: ${table.layout === null ? 'now' : 'already'} ${named(table.wanted)}`);
    }
    return lines;
  });
}

async function placed(database: Database, { entities, shared }: Model, layout: Layout): Promise<Placed[]> {
  const metadata = database.orm.getMetadata();
  const tableOf = (entity: Model['entities'][number]) => metadata.get(entity).tableName;
  // Reference tables first: a distributed table may refer to one, not the other way round.
  const names = [...new Set([...shared, ...entities].map(tableOf))];
  const replicated = new Set(shared.map(tableOf));
  const rows = await database.rows<[name: string, method: string | null, model: string | null, shards: string]>(
    {
      name: 'citus_tables',
      text: `
        select wanted.name, known.partmethod, known.repmodel,
          (select count(*) from pg_dist_shard as shard where shard.logicalrelid = known.logicalrelid)
        from unnest($1::text[]) with ordinality as wanted (name, place)
        left join pg_dist_partition as known on known.logicalrelid = to_regclass(quote_ident(wanted.name))
        order by wanted.place`,
    },
    [names],
  );
  return rows.map(([name, method, model, shards]) => ({
    name,
    wanted: replicated.has(name) ? 'reference' : layout,
    layout: layoutOf(method, model, shards),
  }));
}

/**
 * https://docs.citusdata.com/en/stable/develop/api_metadata.html. A table without a method whose model is not `t` is on
 * the coordinator alone, and Citus knows it because others refer to it: it can still be distributed.
 */
function layoutOf(method: string | null, model: string | null, shards: string): Layout | null {
  if (method === 'n') return model === 't' ? 'reference' : null;
  return method === null ? null : Number(shards);
}

async function place(database: Database, { name, wanted }: Placed): Promise<void> {
  const [call, more] =
    wanted === 'reference'
      ? ['create_reference_table(quote_ident($1))', []]
      : [`create_distributed_table(quote_ident($1), 'id', 'hash', shard_count := $2::int)`, [wanted]];
  await database.rows({ name: `place ${wanted === 'reference'}`, text: `select ${call}` }, [name, ...more]);
}

function named(layout: Layout): string {
  return layout === 'reference' ? 'a reference table' : `distributed by id over ${layout} shards`;
}

function refusal({ name, layout, wanted }: Placed): string {
  const isOnlyShards = typeof layout === 'number' && typeof wanted === 'number';
  const remedy = isOnlyShards
    ? `select alter_distributed_table('${name}', shard_count := ${wanted})`
    : `select undistribute_table('${name}')`;
  return `${name} is ${named(layout as Layout)} already, not ${named(wanted)}. Citus changes that with: ${remedy};`;
}
