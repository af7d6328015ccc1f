import type { EntityMetadata, EntityProperty } from '@mikro-orm/core';
import { type DatabaseError, escapeIdentifier as quoted } from 'pg';
import { openTransaction } from '../call.ts';
import { reportFault } from '../errors.ts';

/** A relation, and a member of the row that it refers to. */
export interface Path {
  readonly by: string;
  readonly member: string;
}

/** A property of an entity, of which triggers keep the column. */
export const ofRelation = Symbol('ofRelation');

export function pathOf(property: object): Path | undefined {
  return (property as { [ofRelation]?: Path })[ofRelation];
}

/** Adds the triggers that copy members of other rows to their columns. */
export function addTriggers(storage: Iterable<EntityMetadata>) {
  const entities = [...storage];
  for (const entity of entities)
    for (const property of entity.props) {
      const path = pathOf(property);
      if (path) keep(entities, entity, property, path);
    }
}

function keep(
  entities: EntityMetadata[],
  entity: EntityMetadata,
  { name, fieldNames, columnTypes }: EntityProperty,
  { by, member }: Path,
) {
  const { tableName, properties } = entity;
  const relation = properties[by as never] as EntityProperty | undefined;
  const { tableName: other } = relation?.targetMeta ?? {};
  const target = entities.find(({ tableName }) => tableName === other);
  const source = target?.properties[member as never] as
    | EntityProperty
    | undefined;
  const isSame = `${source?.columnTypes}` === `${columnTypes}`;
  if (!relation || !target || !source || !isSame || pathOf(source)) {
    reportFault(
      `${tableName}.${name} goes through ${by}, which is no relation to a row with such a ${member} of its own.`,
    );
    return;
  }
  const [column, key, value] = [
    fieldNames,
    relation.fieldNames,
    source.fieldNames,
  ].map((names) => quoted(`${names}`));
  // The lock waits for a change of the other row that is not committed.
  const copy = `select ${value} from ${quoted(target.tableName)} where id = new.${key} for share`;
  // A restored row may come before the other one.
  const given = `case tg_op when 'INSERT' then new.${column} end`;
  const paste = `update ${quoted(tableName)} set ${column} = new.${value} where ${key} = new.id`;
  add(entity, {
    name: `through_${fieldNames}`,
    timing: 'before',
    events: ['insert', 'update'],
    body: `if new.${key} is distinct from old.${key} then new.${column} := coalesce((${copy}), ${given}); end if; return new;`,
  });
  add(target, {
    name: `through_${tableName}_${fieldNames}`,
    timing: 'after',
    events: ['update'],
    body: `if new.${value} is distinct from old.${value} then ${paste}; end if; return null;`,
  });
}

const mark = '#overtaken';

/**
 * SQL that is true, or fails a write: other values were copied to a row than
 * those by which it was judged.
 */
export function unlessOvertaken(isOther: string) {
  return `(case when ${isOther} then '${mark}' else '1' end)::int = 1`;
}

/**
 * True for the error of `unlessOvertaken`. That of a trigger, which may tell a
 * text of a client, has a context.
 */
export function isOvertaken(error: unknown): error is DatabaseError {
  const { message, where } = (error ?? {}) as Partial<DatabaseError>;
  return !where && `${message}`.includes(mark);
}

/** Each is lost only to a change of another row that is stored. */
const attempts = 10;

/**
 * Whether a write is judged and sent again; a transaction is repeated as a
 * whole.
 */
export function isJudgedAgain(error: unknown, attempt: number) {
  const isAlone = !openTransaction.getStore();
  return isOvertaken(error) && isAlone && attempt < attempts;
}

/** @param place where the name of the database is declared */
export function assertShort(name: string, place: string) {
  const bytes = Buffer.byteLength(name);
  if (bytes > 63)
    reportFault(
      `${place}: ${name} has ${bytes} bytes, and PostgreSQL cuts names at 63.`,
    );
}

/** Entities outlive a MikroORM, which discovers them again. */
function add(
  entity: EntityMetadata,
  trigger: EntityMetadata['triggers'][number],
) {
  const { tableName } = entity;
  const routine = `${tableName}_${trigger.name}_fn`;
  assertShort(routine, `${tableName}.${trigger.name}`);
  const known = entity.triggers.find(({ name }) => name === trigger.name);
  if (known && known.body !== trigger.body)
    reportFault(`${tableName} would have two triggers ${trigger.name}.`);
  const others = entity.triggers.filter((one) => one !== known);
  entity.triggers = [...others, { forEach: 'row', ...trigger }];
}
