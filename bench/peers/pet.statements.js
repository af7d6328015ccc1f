import pg from 'pg';

/**
 * Carefully written access to the table through pg: a pool and named prepared
 * statements.
 */

export const pool = new pg.Pool({
  connectionString: process.env.BENCH_DATABASE_URL,
  max: 10,
});

const columns = 'id, name, category_id as "categoryId", status';

export async function listPets({ status, limit, after }) {
  const values = [after ?? 0, limit];
  const query = status
    ? {
        name: 'list_pets_with_status',
        text: `select ${columns} from pet where status = $3 and id > $1 order by id limit $2`,
        values: [...values, status],
      }
    : {
        name: 'list_pets',
        text: `select ${columns} from pet where id > $1 order by id limit $2`,
        values,
      };
  const { rows } = await pool.query(query);
  return rows;
}

export async function findPet(id) {
  const { rows } = await pool.query({
    name: 'find_pet',
    text: `select ${columns} from pet where id = $1`,
    values: [id],
  });
  return rows[0];
}

export async function createPet({ name, categoryId, status }) {
  const { rows } = await pool.query({
    name: 'create_pet',
    text: `insert into pet (name, category_id, status) values ($1, $2, $3) returning ${columns}`,
    values: [name, categoryId, status ?? 'available'],
  });
  return rows[0];
}

/** Reads the hot page once, and ends the pool. @returns its text */
export async function hotPage() {
  const rows = await listPets({ limit: 20 });
  await pool.end();
  return JSON.stringify(
    rows.map((row) => ({
      ...row,
      id: Number(row.id),
      categoryId: Number(row.categoryId),
    })),
  );
}
