import type { Database } from '../../src/storage/database/database.ts';
import type { ServiceNode } from './nodes.ts';

/** Makes calls to a node at the same time: no statement begins before all of them have arrived. */
export async function together<Result>(
  node: ServiceNode,
  database: Database,
  count: number,
  call: () => Promise<Result>,
): Promise<Result[]> {
  const { rows } = database;
  const arrived = new Promise<void>((resolve) => {
    let missing = count;
    node.app.server.on('request', () => {
      missing -= 1;
      if (missing === 0) resolve();
    });
  });
  database.rows = async (...statement) => {
    await arrived;
    return rows.apply(database, statement) as never;
  };
  try {
    return await Promise.all(Array.from({ length: count }, call));
  } finally {
    database.rows = rows;
  }
}
