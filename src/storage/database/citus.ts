import type { Rows } from '../records/statement.ts';

/** What a PostgreSQL is in a Citus cluster, where writes and changes of tables go to the coordinator. */
export type CitusNode = 'none' | 'coordinator' | 'worker';

/** Two statements, because one that names Citus' table is refused where there is no Citus. */
export async function citusNode(rows: Rows): Promise<CitusNode> {
  const [[isThere] = []] = await rows(
    { name: 'has_citus', text: `select to_regclass('pg_catalog.pg_dist_local_group') is not null` },
    [],
  );
  if (isThere !== 't') return 'none';
  // https://docs.citusdata.com/en/stable/develop/api_metadata.html: the coordinator's group is 0.
  const [[group] = []] = await rows(
    { name: 'citus_group', text: 'select groupid from pg_catalog.pg_dist_local_group' },
    [],
  );
  return group === '0' ? 'coordinator' : 'worker';
}

/** A worker has no migrations, and its sequences begin at 281474976710657: new ids would not ascend. */
export const isWorkerOfCitus = 'DATABASE_URL names a worker of a Citus cluster; it has to name the coordinator.';
