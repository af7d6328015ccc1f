import type { Database, Statement } from '../database/database.ts';
import { int64, int64FromDigits } from '../int64.ts';
import type { Pet, PetStatus } from './pet.entity.ts';
import type { NewPet, PetQuery } from './pet.rules.ts';

/**
 * The statements behind PetService, each for a whole batch. They are SQL rather than `em.find` and query builders
 * because hydrating entities costs several times the query itself here (`bench/README.md`), and because no builder
 * writes `unnest ... cross join lateral`.
 */

type PetRow = [id: string, name: string, categoryId: string, status: PetStatus];

const columns = 'id, name, category_id, status';
const beforeAll = String(int64.min);

const listAll: Statement = {
  name: 'list_pets',
  text: `select ${columns} from pet where id > $1 order by id limit $2`,
};

// A range of the index on (status, id), as rows: with `status = $3 and id > $1` PostgreSQL's generic plan may walk the
// primary key instead and throw most rows away, the more the rarer a status is.
const listWithStatus: Statement = {
  name: 'list_pets_with_status',
  text: `
    select ${columns} from pet where (status, id) > ($3, $1) and (status, id) <= ($3, ${int64.max})
    order by status, id limit $2`,
};

// Two branches instead of `wanted.status is null or status = wanted.status`: each has an index that serves it, and
// PostgreSQL skips the branch whose one-time filter is false.
const listMany: Statement = {
  name: 'list_pets_many',
  text: `
    select page.${columns.replaceAll(', ', ', page.')}, wanted.list
    from unnest($1::bigint[], $2::int[], $3::text[]) with ordinality as wanted (after, "limit", status, list)
    cross join lateral (
      (select ${columns} from pet
        where wanted.status is null and id > wanted.after order by id limit wanted."limit")
      union all
      (select ${columns} from pet
        where wanted.status is not null
          and (status, id) > (wanted.status, wanted.after) and (status, id) <= (wanted.status, ${int64.max})
        order by status, id limit wanted."limit")
    ) as page
    order by wanted.list, page.id`,
};

const findMany: Statement = {
  name: 'find_pets',
  text: `select ${columns} from pet where id = any($1::bigint[])`,
};

// The lock makes ids appear in the order of their commits: a reader that has walked past id 7 will never miss a 6
// that was still being written. It is held from before the first id is drawn until the commit is visible.
const insertMany: Statement = {
  name: 'insert_pets',
  text: `
    with turn as materialized (select pg_advisory_xact_lock(hashtext('pet')))
    insert into pet (name, category_id, status)
    select newcomer.name, newcomer.category_id, newcomer.status
    from turn, unnest($1::text[], $2::bigint[], $3::text[]) with ordinality as newcomer (name, category_id, status, place)
    order by newcomer.place
    returning id`,
};

/** @returns one list per query, in order; equal queries are fetched once and share one list. */
export async function selectLists(database: Database, queries: PetQuery[]): Promise<Pet[][]> {
  const lists = new Map<string, { query: PetQuery; pets: Pet[] }>();
  const keys = queries.map((query) => {
    const key = `${query.status} ${query.limit} ${query.after}`;
    if (!lists.has(key)) lists.set(key, { query, pets: [] });
    return key;
  });
  const distinct = [...lists.values()];
  if (distinct.length === 1 && distinct[0]) await fillOne(database, distinct[0]);
  else await fillMany(database, distinct);
  return keys.map((key) => lists.get(key)?.pets ?? []);
}

interface WantedList {
  query: PetQuery;
  pets: Pet[];
}

async function fillOne(database: Database, { query, pets }: WantedList): Promise<void> {
  const values = [String(query.after ?? beforeAll), query.limit];
  const rows = query.status
    ? await database.rows<PetRow>(listWithStatus, [...values, query.status])
    : await database.rows<PetRow>(listAll, values);
  for (const row of rows) pets.push(toPet(row));
}

async function fillMany(database: Database, lists: WantedList[]): Promise<void> {
  const rows = await database.rows<[...PetRow, list: string]>(listMany, [
    lists.map(({ query }) => String(query.after ?? beforeAll)),
    lists.map(({ query }) => query.limit),
    lists.map(({ query }) => query.status ?? null),
  ]);
  for (const row of rows) lists[Number(row[4]) - 1]?.pets.push(toPet(row));
}

/** @returns one animal per id, in order; null where there is none. */
export async function selectByIds(database: Database, ids: bigint[]): Promise<Array<Pet | null>> {
  const rows = await database.rows<PetRow>(findMany, [[...new Set(ids)].map(String)]);
  const found = new Map(rows.map((row) => [row[0], toPet(row)]));
  return ids.map((id) => found.get(`${id}`) ?? null);
}

/** Inserts all or none. @returns the animals with their ids, which ascend in the order given. */
export async function insertPets(database: Database, newPets: NewPet[]): Promise<Pet[]> {
  const rows = await database.rows<[id: string]>(insertMany, [
    newPets.map(({ name }) => name),
    newPets.map(({ categoryId }) => String(categoryId)),
    newPets.map(({ status }) => status),
  ]);
  const ids = rows.map(([id]) => BigInt(id)).sort((a, b) => (a < b ? -1 : 1));
  return newPets.map((newPet, place) => ({ id: int64FromDigits(`${ids[place]}`), ...newPet }));
}

function toPet([id, name, categoryId, status]: readonly [...PetRow, ...unknown[]]): Pet {
  return { id: int64FromDigits(id), name, categoryId: int64FromDigits(categoryId), status };
}
