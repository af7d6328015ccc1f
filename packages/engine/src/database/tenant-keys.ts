import type { EntityMetadata, EntityProperty, MikroORM } from '@mikro-orm/core';
import { type DatabaseSchema, SqlSchemaGenerator } from '@mikro-orm/postgresql';

/** Marks the member that has the tenant of a row. */
export const ofTenant = Symbol('of tenant');

/** Undefined where a row may belong to none. */
export function tenantIn({ props }: Pick<EntityMetadata, 'props'>) {
  return props.find((one) => ofTenant in one && !one.nullable);
}

/**
 * Lets a relation between rows of tenants refer to the tenant, too: then
 * PostgreSQL refuses that to another tenant's row.
 */
export class TenantKeys extends SqlSchemaGenerator {
  static override register(orm: MikroORM) {
    const create = () => new TenantKeys(orm.em as never);
    orm.config.registerExtension('@mikro-orm/schema-generator', create);
  }

  override getTargetSchema(...given: [string?, boolean?]) {
    const schema = super.getTargetSchema(...given);
    for (const meta of this.getOrderedMetadata(...given))
      for (const one of meta.relations) addTenant(schema, meta, one);
    return schema;
  }

  /** A key of a table to itself needs the unique one first. */
  override diffToSQL(...given: Parameters<SqlSchemaGenerator['diffToSQL']>) {
    const lines = super.diffToSQL(...given).split('\n');
    const isKey = (line: string) => Number(/ foreign key \(/.test(line));
    return lines.sort((one, other) => isKey(one) - isKey(other)).join('\n');
  }
}

function addTenant(
  schema: DatabaseSchema,
  meta: EntityMetadata,
  { fieldNames, targetMeta }: EntityProperty,
) {
  const own = tenantIn(meta);
  const other = targetMeta && tenantIn(targetMeta);
  if (!own || !other) return;
  const table = schema.getTable(meta.tableName);
  const target = schema.getTable(targetMeta.tableName);
  const key = Object.values(table?.getForeignKeys() ?? {}).find(
    ({ columnNames }) => columnNames === fieldNames,
  );
  if (!key || !target) return;
  // PostgreSQL 15 or later: the tenant stays.
  if (key.deleteRule === 'set null') key.deleteRule += ` ("${fieldNames}")`;
  const referenced = [...other.fieldNames, ...key.referencedColumnNames];
  key.columnNames = [...own.fieldNames, ...fieldNames];
  key.referencedColumnNames = referenced;
  const index = target
    .getIndexes()
    .find(({ columnNames }) => `${columnNames}` === `${referenced}`);
  if (index) index.unique = true;
  else
    target.addIndex(targetMeta, { properties: [other.name, 'id'] }, 'unique');
}
