import { escapeLiteral as literal, escapeIdentifier as quoted } from 'pg';
import type { Statement } from '../database/database.ts';
import { maxExactTotal } from '../validation/page.ts';
import type { Column, Table } from './table.ts';

export type Statements = ReturnType<typeof statementsFor>;

/**
 * The statements behind `Records`, each for a whole batch; `findOne` and
 * `insertOne` for a batch of one, because arrays cost PostgreSQL a third of a
 * small statement. They are SQL because hydrating entities costs several times
 * as much as the query (`bench/README.md`), and no query builder supports
 * `unnest ... cross join lateral`. Names and types come from the entity.
 *
 * @param filters the columns to filter lists by
 * @param orders those to sort lists by, beside the id
 * @throws Error naming the indexes that they lack
 */
export function statementsFor(
  described: Table,
  filters: readonly Column[],
  orders: readonly Column[] = [],
) {
  const { name: unquoted, columns, inserted, generated } = described;
  const table = quoted(unquoted);
  const names = columns.map(({ name }) => name).join(', ');
  const list = aggregated(columns);
  // Several `Records` of one table may have different filters, so the name
  // contains the filters.
  const statement = (
    name: string,
    text: string,
    used: readonly Column[] = [],
  ): Statement => ({
    name: [
      name,
      unquoted,
      ...(used.length > 0 ? ['by'] : []),
      ...used.map(({ member }) => member),
    ].join('_'),
    text,
  });
  const wanted = filters.map((_, at) => `filter${at || ''}`);
  const given = (column: Column) => `wanted.${wanted[filters.indexOf(column)]}`;
  const pagesIn = (order: Order): Pages => {
    const { by, hasPlace } = order;
    const combinations = described.combinationsOf(filters, by);
    const selected = by
      ? `${list}, json_agg(${by.name}::text) as "#order"`
      : list;
    const place = hasPlace
      ? [...(by ? [{ name: 'value', type: by.type }] : []), positionColumn]
      : [];
    const parameters = [
      { name: '"limit"', type: 'int' },
      ...filters.map(({ type }, at) => ({ name: `${wanted[at]}`, type })),
      ...place,
    ];
    const branches = combinations.map((used) => {
      const conditions = filters.map(
        (column) =>
          `${given(column)} is ${used.includes(column) ? 'not null' : 'null'} and `,
      );
      const ofPlace = place.map(({ name }) => `wanted.${name}`);
      return `(select ${names} from ${table}
          where ${conditions.join('')}${range(used, used.map(given), order, ofPlace)} limit wanted."limit")`;
    });
    const suffix = `_${nameOf(order)}`.replace(/^_id/, '');
    return {
      order,
      lists: combinations.map((used) => {
        const [limit, ...rest] = [...parameters.keys()].map(
          (at) => `$${at + 1}`,
        );
        const values = rest.slice(0, used.length);
        const ofPlace = rest.slice(used.length, used.length + place.length);
        const page = `select ${names} from ${table} where ${range(used, values, order, ofPlace)} limit ${limit}`;
        return {
          filters: used,
          ...statement(
            `list${suffix}`,
            `select ${selected} from (${page}) as item`,
            used,
          ),
        };
      }),
      // Branches instead of `wanted.filter is null or ...`: each uses an index,
      // and PostgreSQL skips the branches whose one-time filter is false.
      // Skipped branches are not free: those of another order would cost
      // PostgreSQL a sixth.
      listMany: statement(
        `list_many${suffix}`,
        `select page.*
      from unnest(${parameters.map(({ type }, at) => `$${at + 1}::${type}[]`).join(', ')}) with ordinality
        as wanted (${[...parameters.map(({ name }) => name), 'place'].join(', ')})
      cross join lateral (
        select ${selected} from (
          ${branches.join(' union all ')}
        ) as item
      ) as page
      order by wanted.place`,
        filters,
      ),
    };
  };
  const pages = new Map(
    ordersOf(orders).map((order) => [nameOf(order), pagesIn(order)]),
  );
  const row = `select ${columns.map(({ text }) => text).join(', ')} from ${table}`;
  // The lock makes rows visible in the order of their ids, so a reader that has
  // passed id 7 never misses a later 6. It is held from before the first id is
  // drawn until the commit is visible.
  const insertion = (
    name: string,
    value: (column: Column, at: number) => string,
    inputs = '',
  ): Statement => {
    const orDefault = (column: Column, at: number) =>
      column.fallback
        ? `coalesce(${value(column, at)}, ${column.fallback})`
        : value(column, at);
    const text = `with lock as materialized (select pg_advisory_xact_lock(hashtext(${literal(unquoted)})))
        insert into ${table} (${inserted.map((column) => column.name).join(', ')})
        select ${inserted.map(orDefault).join(', ')} from lock${inputs}
        returning ${generated.map((column) => column.text).join(', ')}`;
    return { isWrite: true, ...statement(name, text) };
  };
  return {
    last: statement('last', `select max(id)::text from ${table}`),
    // An insert holds this lock from drawing its ids until they are visible on
    // every node. While this statement holds it, no id is drawn, so later
    // statements see all rows up to the last id.
    horizon: statement(
      'horizon',
      `with lock as materialized (select pg_advisory_xact_lock_shared(hashtext(${literal(unquoted)}))::text)
      select pg_sequence_last_value(pg_get_serial_sequence(${literal(table)}, 'id')::regclass)::text from lock`,
    ),
    /** By `sort`, with `_after` for those that begin at a value. */
    pages,
    /**
     * By the filters in use: bit n of the index is set when filter n has a
     * value.
     */
    counts: described.combinationsOf(filters).map((used) => {
      const equal = used
        .map(({ name }, at) => `${name} = $${at + 1}`)
        .join(' and ');
      const rows = `select 1 from ${table}${equal && ` where ${equal}`}`;
      return {
        /** The filters in use, in the order of their parameters. */
        filters: used,
        count: statement(
          'count',
          `select count(*) from (${rows} limit ${maxExactTotal + 1}) as item`,
          used,
        ),
        /** PostgreSQL's plan as JSON, with the estimated number of rows. */
        estimate: statement('estimate', `explain (format json) ${rows}`, used),
      };
    }),
    find: statement('find', `${row} where id = any($1::bigint[])`),
    findOne: statement('find_one', `${row} where id = $1`),
    insert: insertion(
      'insert',
      ({ name }) => `input.${name}`,
      `, unnest(${inserted.map(({ type }, at) => `$${at + 1}::${type}[]`).join(', ')}) with ordinality
          as input (${inserted.map(({ name }) => name).join(', ')}, "#place")
        order by input."#place"`,
    ),
    insertOne: insertion('insert_one', ({ type }, at) => `$${at + 1}::${type}`),
    insertOnce: insertOnceFor(described),
  };
}

/** An order of lists. */
export interface Order {
  /** Undefined for the id. */
  readonly by?: Column | undefined;
  readonly isAscending: boolean;
  /** Whether they begin at a place; those by id always do. */
  readonly hasPlace: boolean;
}

/** The lists in one order. */
export interface Pages {
  readonly order: Order;
  /**
   * By the filters in use: bit n of the index is set when filter n has a value.
   * `filters` are in the order of their parameters, between the limit and the
   * place.
   */
  readonly lists: Array<Statement & { readonly filters: Column[] }>;
  readonly listMany: Statement;
}

const positionColumn = { name: 'position', type: 'bigint' };

function ordersOf(columns: readonly Column[]): Order[] {
  const byId = [true, false].map((isAscending) => ({
    isAscending,
    hasPlace: true,
  }));
  const others = columns.flatMap((by) =>
    byId.flatMap((order) => [
      { ...order, by },
      { ...order, by, hasPlace: false },
    ]),
  );
  return [...byId, ...others];
}

function nameOf({ by, isAscending, hasPlace }: Order): string {
  const place = by && hasPlace ? '_after' : '';
  return `${by?.member ?? 'id'}${isAscending ? '' : '_desc'}${place}`;
}

/**
 * A row comparison is a range of the index on (filter, id). With `status = $3
 * and id > $1`, PostgreSQL's generic plan may scan the primary key instead and
 * discard most rows. The other filters are compared one by one, because
 * PostgreSQL takes any row comparison for a ninth of the table, and would
 * prefer an index on fewer columns.
 *
 * @param place the greatest id of a descending list, or the id above which an
 *   ascending one begins; before it the value of the order's column
 */
function range(
  used: readonly Column[],
  values: string[],
  { by, isAscending, hasPlace }: Order,
  place: string[],
): string {
  const compared = used.map(({ name }, at) => ({
    name,
    value: `${values[at]}`,
  }));
  const last = compared.splice(-1);
  const keys = [...last, ...(by ? [by] : []), { name: 'id' }].map(
    ({ name }) => name,
  );
  const begin = [...last.map(({ value }) => value), ...place];
  const conditions = compared.map(({ name, value }) => `${name} = ${value}`);
  if (hasPlace)
    conditions.push(`(${keys}) ${isAscending ? '>' : '<='} (${begin})`);
  for (const { name, value } of last) {
    if (isAscending || !hasPlace) conditions.push(`${name} <= ${value}`);
    if (!isAscending || !hasPlace) conditions.push(`${name} >= ${value}`);
  }
  const direction = isAscending ? '' : ' desc';
  const order = keys.map((name) => `${name}${direction}`);
  return `${conditions.join(' and ') || 'true'} order by ${order}`;
}

/**
 * Selects a list as one row with one text per column. That costs PostgreSQL as
 * much as separate rows, and this process a third. Values that are safe to join
 * are joined by commas, with an empty text for null; other columns are JSON
 * arrays. Aggregates without `order by` process rows in the order of the
 * subquery (PostgreSQL's manual, section 9.21).
 */
function aggregated(columns: readonly Column[]): string {
  return columns
    .map(({ name, text, isSafeToJoin, isNullable }) => {
      if (isSafeToJoin)
        return `string_agg(${isNullable ? `coalesce(${text}, '')` : text}, ',') as ${name}`;
      return `json_agg(${text}) as ${name}`;
    })
    .join(', ');
}

/**
 * Inserts rows and their idempotency claims, if any, atomically.
 *
 * The last parameters are the claims' key ids, operations, hashes and
 * fingerprints, all null for a row without a claim. It returns one row per
 * place (from 1): null and the generated values, as a JSON array of texts; for
 * a known claim, its fingerprint in hexadecimal and the values generated then.
 * If another process stores the same claim after this statement's snapshot, its
 * place is missing in the result: its item was not inserted, and a repetition
 * finds the claim.
 */
function insertOnceFor({ name, inserted, generated }: Table): Statement {
  const table = quoted(name);
  const names = inserted.map((column) => column.name);
  const types = [
    ...inserted.map(({ type }) => type),
    'int',
    'text',
    'bytea',
    'bytea',
  ];
  const values = inserted.map(({ name, fallback }) =>
    fallback ? `coalesce(${name}, ${fallback}) as ${name}` : name,
  );
  const identity = '"#key", "#operation", "#hash"';
  return {
    name: `insert_once_${name}`,
    isWrite: true,
    // The cast is for Citus, which cannot store a column of type void. `limit`
    // makes PostgreSQL use the index for each claim; a join would scan the
    // whole table until it has been analysed.
    text: `with lock as materialized (select pg_advisory_xact_lock(hashtext(${literal(name)}))::text),
      input as materialized (
        select input.* from lock, unnest(${types.map((type, at) => `$${at + 1}::${type}[]`).join(', ')})
          with ordinality as input (${[...names, identity].join(', ')}, "#fingerprint", "#place")),
      known as materialized (
        select "#place", stored.fingerprint, stored.generated
        from input cross join lateral (
          select fingerprint, generated from idempotency_key where (key_id, operation, hash) = (${identity}) limit 1
        ) as stored),
      ready as materialized (
        select *, array[${generated.map(({ text }) => text).join(', ')}] as "#generated" from (
          select nextval((select pg_get_serial_sequence(${literal(table)}, 'id')::regclass)) as id,
            ${[...values, identity].join(', ')}, "#fingerprint", "#place"
          from (select * from input where "#place" not in (select "#place" from known) order by "#place") as unknown
        ) as drawn),
      claimed as (
        insert into idempotency_key (key_id, operation, hash, fingerprint, generated)
        select ${identity}, "#fingerprint", "#generated" from ready where "#hash" is not null
        on conflict do nothing
        returning key_id, operation, hash),
      accepted as materialized (
        select * from ready
        where "#hash" is null or (${identity}) in (select key_id, operation, hash from claimed)),
      inserted as (
        insert into ${table} (${['id', ...names].join(', ')})
        select ${['id', ...names].join(', ')} from accepted order by "#place")
      select "#place", null as fingerprint, to_json("#generated")::text from accepted
      union all
      select "#place", encode(fingerprint, 'hex'), to_json(generated)::text from known`,
  };
}
