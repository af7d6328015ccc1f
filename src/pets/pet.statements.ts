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
type ListRow = [ids: string | null, names: string, categoryIds: string, statuses: string];
type LongListRow = [...ListRow, isCut: string];

/** What an animal takes beside its name, in bytes. */
export const frame = 80;

/** Animals as they were read, and how many bytes their names have. */
export interface PetList {
  readonly pets: Pet[];
  readonly bytes: number;
}

const columns = 'id, name, category_id, status';
const beforeAll = String(int64.min);

/** In bytes. Longer names than the service takes by default are not read for many at a time, but page by page. */
export const longestShortName = 40_000;
const shortName = `case when octet_length(name) <= ${longestShortName} then name end`;

// A list comes as one row, each column of it as one text: that costs PostgreSQL what rows cost, and us a third of reading
// rows. Aggregates without `order by` take rows as they come, and they come in the order of the subquery (PostgreSQL's
// manual, section 9.21).
const list = `string_agg(id::text, ',') as ids, json_agg(${shortName}) as names,
  string_agg(category_id::text, ',') as category_ids, string_agg(status, ',') as statuses`;

const listAll: Statement = {
  name: 'list_pets',
  text: `select ${list} from (select ${columns} from pet where id > $1 order by id limit $2) as pet`,
};

// A range of the index on (status, id), as rows: with `status = $3 and id > $1` PostgreSQL's generic plan may walk the
// primary key instead and throw most rows away, the more the rarer a status is.
const listWithStatus: Statement = {
  name: 'list_pets_with_status',
  text: `
    select ${list} from (
      select ${columns} from pet where (status, id) > ($3, $1) and (status, id) <= ($3, ${int64.max})
      order by status, id limit $2) as pet`,
};

// Two branches instead of `wanted.status is null or status = wanted.status`: each has an index that serves it, and
// PostgreSQL skips the branch whose one-time filter is false.
const listMany: Statement = {
  name: 'list_pets_many',
  text: `
    select page.ids, page.names, page.category_ids, page.statuses
    from unnest($1::bigint[], $2::int[], $3::text[]) with ordinality as wanted (after, "limit", status, place)
    cross join lateral (
      select ${list} from (
        (select ${columns} from pet
          where wanted.status is null and id > wanted.after order by id limit wanted."limit")
        union all
        (select ${columns} from pet
          where wanted.status is not null
            and (status, id) > (wanted.status, wanted.after) and (status, id) <= (wanted.status, ${int64.max})
          order by status, id limit wanted."limit")
      ) as pet
    ) as page
    order by wanted.place`,
};

// As many as fit, and at least one: the lengths are known without the names being read.
const listLong: Statement = {
  name: 'list_pets_long',
  text: `
    with page as materialized (
      select ${columns}, sum(octet_length(name) + ${frame}) over (order by id) as bytes, row_number() over (order by id) as place
      from (select ${columns} from pet
        where id > $1 and ($3::text is null or status = $3) order by id limit $2) as pet)
    select string_agg(id::text, ',') as ids, json_agg(name) as names,
      string_agg(category_id::text, ',') as category_ids, string_agg(status, ',') as statuses,
      (select count(*) from page) > count(*) as is_cut
    from (select * from page where bytes <= $4 or place = 1 order by id) as fitting`,
};

const findMany: Statement = {
  name: 'find_pets',
  text: `select ${columns} from pet where id = any($1::bigint[])`,
};

// The lock makes ids appear in the order of their commits: a reader that has walked past id 7 will never miss a 6
// that was still being written. It is held from before the first id is drawn until the commit is visible.
const insertMany: Statement = {
  name: 'insert_pets',
  isWrite: true,
  text: `
    with turn as materialized (select pg_advisory_xact_lock(hashtext('pet')))
    insert into pet (name, category_id, status)
    select newcomer.name, newcomer.category_id, newcomer.status
    from turn, unnest($1::text[], $2::bigint[], $3::text[]) with ordinality as newcomer (name, category_id, status, place)
    order by newcomer.place
    returning id`,
};

/**
 * @returns one list per query, in order; equal queries are fetched once and share one list. null for a list with names
 *   that are too long to be read for many at a time: `selectLongList` reads it.
 */
export async function selectLists(database: Database, queries: PetQuery[]): Promise<Array<PetList | null>> {
  const keys = queries.map(({ status, limit, after }) => `${status} ${limit} ${after}`);
  const distinct = new Map(queries.map((query, index) => [keys[index], query]));
  const rows = await selectRows(database, [...distinct.values()]);
  const lists = new Map([...distinct.keys()].map((key, place) => [key, toList(rows[place] as ListRow)]));
  return keys.map((key) => lists.get(key) as PetList | null);
}

/** @param maxBytes of all animals together. @returns as many as fit, at least one; and whether that is not all */
export async function selectLongList(
  database: Database,
  query: PetQuery,
  maxBytes: number,
): Promise<PetList & { isCut: boolean }> {
  const values = [String(query.after ?? beforeAll), query.limit, query.status ?? null, maxBytes];
  const [row] = (await database.rows<LongListRow>(listLong, values)) as [LongListRow];
  const [ids, names, categoryIds, statuses, isCut] = row;
  return { ...(toList([ids, names, categoryIds, statuses]) as PetList), isCut: isCut === 't' };
}

/** @returns one row per query, in order. */
function selectRows(database: Database, queries: PetQuery[]): Promise<ListRow[]> {
  const [{ status, after, limit }] = queries as [PetQuery];
  if (queries.length === 1) {
    const values = [String(after ?? beforeAll), limit];
    return status ? database.rows(listWithStatus, [...values, status]) : database.rows(listAll, values);
  }
  return database.rows(listMany, [
    queries.map(({ after }) => String(after ?? beforeAll)),
    queries.map(({ limit }) => limit),
    queries.map(({ status }) => status ?? null),
  ]);
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

function toPet([id, name, categoryId, status]: PetRow): Pet {
  return { id: int64FromDigits(id), name, categoryId: int64FromDigits(categoryId), status };
}

function toList([ids, names, categoryIds, statuses]: ListRow): PetList | null {
  if (ids === null) return { pets: [], bytes: 0 };
  const petNames: Array<string | null> = JSON.parse(names);
  if (petNames.includes(null)) return null;
  const petCategoryIds = categoryIds.split(',');
  const petStatuses = statuses.split(',') as PetStatus[];
  const pets = ids
    .split(',')
    .map((id, place) => toPet([id, petNames[place], petCategoryIds[place], petStatuses[place]] as PetRow));
  return { pets, bytes: Buffer.byteLength(names) };
}
