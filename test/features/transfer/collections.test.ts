// runs: embedded, postgres, pgbouncer, citus-shards, postgres-12, postgres-18
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Type } from 'typebox';
import { type Module, openModules } from '#engine/api/module.js';
import { exportItems } from '#engine/features/transfer/export.js';
import { importFile } from '#engine/features/transfer/import.js';
import { Records } from '#engine/records/records.js';
import type { Int64 } from '#engine/validation/int64.js';
import {
  enumSchema,
  int64Schema,
  moment,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { checkupsModule } from '../../modules/checkups/checkups.module.ts';
import {
  CrateEntity,
  createCrate,
  Size,
} from '../../modules/crates/crate.entity.ts';
import { sql } from '../../support/database-access.ts';
import { newFolder } from '../../support/folder.ts';
import { beforeEach, expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { rest } from '../../support/rest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { storeForAll } from '../../support/store.ts';

const text = textSchema({ maxLength: 100, description: 'A text.' });
const input = Type.Object({
  place: text,
  quote: nullable(text),
  seenAt: moment({ description: 'A time.' }),
  isOpen: Type.Boolean(),
  order: nullable(Type.Integer({ minimum: -100, maximum: 100 })),
  parent: nullable(int64Schema({ description: 'The crate around it.' })),
  size: nullable(enumSchema('Size', Size, 'How large it is.')),
  weight: nullable(Type.Number()),
});
const item = Type.Object({
  id: int64Schema({ description: 'Its id.' }),
  ...input.properties,
});
type NewCrate = Record<string, unknown>;
type Crate = NewCrate & { readonly id: Int64 };

/** A collection with columns of every type. */
const cratesModule: Module<Records<Crate, NewCrate>> = {
  tag: { name: 'Crates', description: 'Crates.' },
  entities: [CrateEntity],
  migrations: [migrationOf('2027_01_01_000000_create_crate', [createCrate])],
  open: ({ database }) => {
    const service = new Records<Crate, NewCrate>(database, CrateEntity);
    const collection = { name: 'crates', input, item, service };
    return { service, collections: [collection as never] };
  },
};

// Citus allows a foreign key between distributed tables only when both are
// distributed by it.
const more = citusLayout ? [cratesModule] : [cratesModule, checkupsModule];
const store = storeForAll({}, undefined, { more });
beforeEach(() => sql(store.database, 'truncate "Order" restart identity'));

/** A transfer of a collection, and what it refuses. */
function transferOf(name: string) {
  const collection = openModules(store.modules, store.database, {})
    .flatMap(({ collections = [] }) => collections)
    .find((one) => one.name === name);
  if (!collection) throw new Error(`no collection ${name}`);
  const reasons: string[] = [];
  const transfer = {
    collection,
    maxLength: 10_000,
    signal: new AbortController().signal,
    progress: () => undefined,
    refused: (line: number, reason: string) =>
      void reasons.push(`${line}: ${reason}`),
  };
  return { transfer, reasons };
}

/** Imports these items as lines of JSON. */
async function imported(name: string, items: object[]) {
  const input = join(await newFolder(), 'items.ndjson');
  await writeFile(input, items.map((one) => JSON.stringify(one)).join('\n'));
  const { transfer, reasons } = transferOf(name);
  const { result } = await importFile(transfer, { input });
  return { result, reasons };
}

const nulls = {
  order: null,
  parent: null,
  size: null,
  weight: null,
  quote: null,
};

test.each(['ndjson', 'csv'] as const)(
  'an export and an import keep every type of value (%s)',
  async (format) => {
    const most = {
      place: 'a,b,"c"\\',
      order: -7,
      parent: 9223372036854775807n,
      isOpen: false,
      size: 'large',
      weight: 1.5e300,
      seenAt: new Date('1800-02-28T23:59:59.001Z'),
      quote: '',
    };
    const { transfer, reasons } = transferOf('crates');
    const { service } = transfer.collection;
    // `addedAt` is no member of the collection: the database sets it.
    const all = async () => {
      const { items } = await service.list({ limit: 100 } as never);
      return items.map((crate) => ({ ...(crate as Crate), addedAt: null }));
    };
    // Null and the empty text differ; a double may be larger than any integer.
    for (const crate of [
      most,
      { ...most, ...nulls },
      { ...most, weight: -0.1, quote: null },
    ])
      await service.create(crate as never);
    const before = await all();
    const file = join(await newFolder(), `crates.${format}`);
    expect(await exportItems(transfer, { output: file })).toEqual({
      result: { exported: 3, last: '3' },
      items: 3,
      text: '3 exported, the last with id 3',
    });
    await sql(store.database, 'truncate "Order" restart identity');
    expect(await importFile(transfer, { input: file })).toMatchObject({
      result: { added: 3, same: 0, refused: 0 },
    });
    expect(await all()).toEqual(before);
    expect(await importFile(transfer, { input: file })).toMatchObject({
      result: { added: 0, same: 3, refused: 0 },
    });
    expect(reasons).toEqual([]);
  },
);

(citusLayout ? test.skip : test)(
  'an import refuses the line with a value that must be unique, and adds the others',
  async () => {
    await sql(store.database, 'create unique index once on "Order" (place)');
    const crates = ['a', 'b', 'a', 'c'].map((place) => ({
      ...nulls,
      place,
      isOpen: true,
      seenAt: '2026-11-21T12:34:56.789Z',
    }));
    expect(await imported('crates', crates)).toEqual({
      result: { added: 3, same: 0, refused: 1 },
      reasons: ['3: Another one has this place.'],
    });
    await sql(store.database, 'drop index once');
  },
);

(citusLayout ? test.skip : test)(
  'an import refuses the line that refers to an unknown item, and adds the others',
  async () => {
    const json = { name: 'Rex', categoryId: 1 };
    const rex = await rest(store, '/v1/pets', { method: 'POST', json });
    const checkups = [Number(rex.json.id), 2 ** 40].map((petId) => ({
      petId,
      reason: 'import',
      price: '1.5',
    }));
    expect(await imported('checkups', checkups)).toEqual({
      result: { added: 1, same: 0, refused: 1 },
      reasons: ['2: petId must be the id of one that exists.'],
    });
  },
);
