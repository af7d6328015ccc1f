// runs: embedded, postgres

import { defineEntity, p } from '@mikro-orm/core';
import { Type } from 'typebox';
import { type Module, openModules } from '#engine/api/module.js';
import { resource } from '#engine/api/resources/resource.js';
import { importLines } from '#engine/features/transfer/import.js';
import { Records } from '#engine/records/records.js';
import {
  int64Schema,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { kennelModules } from '../../modules/kennels/kennels.module.ts';
import { sql } from '../../support/database-access.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { migrationOf } from '../../support/migrations.ts';
import { storeForAll } from '../../support/store.ts';

const branch = resource({
  name: 'Branch',
  description: 'A part of a tree that belongs to no tenant.',
  path: '/branches',
  operations: ['list', 'create'],
  members: {
    name: textSchema({ maxLength: 9, description: 'The name.' }),
    parentId: Type.Optional(
      nullable(int64Schema({ description: 'From where it grows.' })),
    ),
  },
});
const BranchEntity = defineEntity({
  name: 'Branch',
  properties: {
    ...branch.columns,
    parentId: () =>
      p.manyToOne(BranchEntity).mapToPk().joinColumn('parent_id').nullable(),
  },
  indexes: [{ properties: ['parentId', 'id'] }],
});
const branches: Module = {
  tag: { name: 'Branches', description: 'A tree.' },
  entities: [BranchEntity],
  migrations: [
    migrationOf('2027_03_06_000000_create_branch', [
      `create table branch (id bigserial primary key, name text not null unique, parent_id bigint references branch, version int not null default 1)`,
      'create index branch_parent_id_id_index on branch (parent_id, id)',
    ]),
  ],
  open: ({ database }) => ({
    resources: [
      branch.serve(new Records(database, BranchEntity, branch.lists)),
    ],
  }),
};

const store = storeForAll({}, undefined, {
  more: [...kennelModules, branches],
});

/** Imports lines into a collection. */
async function importInto(
  path: string,
  inputs: object[],
  options: Parameters<typeof importLines>[2] = {},
) {
  const { database, modules } = store;
  async function* lines() {
    for (const [at, input] of inputs.entries()) yield { line: at + 1, input };
  }
  const collection = openModules(modules, database, {})
    .flatMap(({ collections = [] }) => collections)
    .find(({ name }) => name === path);
  const refused: string[] = [];
  const transfer = {
    collection,
    signal: new AbortController().signal,
    progress: () => undefined,
    refused: (line: number, reason: string) =>
      void refused.push(`${line}: ${reason}`),
  };
  const { result, failure } = await importLines(
    lines(),
    transfer as never,
    options,
  );
  return [result, refused, failure];
}

/** Imports dogs of a kennel of its own, each with its mother's line. */
async function importDogs(name: string, mothers: Array<number | null>) {
  const { database } = store;
  const [[kennel] = []] = await sql(
    database,
    `insert into kennel (name, clinic, changed_by) values ('${name}', 'a', 'x')
     returning id::text`,
  );
  const [[last] = []] = await sql(
    database,
    'select coalesce(max(id), 0)::text from dog',
  );
  const inputs = mothers.map((mother) => {
    const motherId = mother && Number(last) + mother;
    const kennelId = Number(kennel);
    return { name: 'd', kennelId, motherId, practice: 'a' };
  });
  return importInto('dogs', inputs);
}

const after = (line: number) =>
  new Error(
    `The lines behind line ${line} are not added: they would refer to other rows.`,
  );

test('a line of a tenant may refer to the line before it', async () => {
  expect(await importDogs('k', [null, 1, 2, 3])).toEqual([
    { added: 4, same: 0, refused: 0 },
    [],
    undefined,
  ]);
});

test('a refused line ends an import, because later ones refer to lines by their numbers', async () => {
  expect(await importDogs('l', [null, 99, 2, 3])).toEqual([
    { added: 1, same: 0, refused: 1 },
    [expect.stringMatching(/^2: /)],
    after(2),
  ]);
});

describe('of a tree without tenants', () => {
  /** Four branches; the last one grows from the third. */
  const treeOf = (second: string) => [
    { name: 'a' },
    { name: second, parentId: 1 },
    { name: 'c', parentId: 1 },
    { name: 'd', parentId: 3 },
  ];
  const ofBranches = `setval(pg_get_serial_sequence('branch', 'id')`;
  const added = async () =>
    sql(
      store.database,
      'select child.name, parent.name from branch child left join branch parent on parent.id = child.parent_id order by child.id',
    );

  test.each([
    ['the schema', 'too long a name'],
    ['the database', 'a'],
  ])('a line that %s refuses ends the import', async (_who, second) => {
    await sql(store.database, 'truncate branch restart identity');
    const options = { source: `tree-${second}` };
    expect(await importInto('branches', treeOf(second), options)).toEqual([
      { added: 1, same: 0, refused: 1 },
      [expect.stringMatching(/^2: /)],
      after(2),
    ]);
    expect(await added()).toEqual([['a', null]]);
    // The database has counted the line that it refused.
    await sql(store.database, `select ${ofBranches}, max(id)) from branch`);
    const [result] = await importInto('branches', treeOf('b'), options);
    expect(result).toEqual({ added: 3, same: 1, refused: 0 });
    expect(await added()).toEqual([
      ['a', null],
      ['b', 'a'],
      ['c', 'a'],
      ['d', 'c'],
    ]);
  });

  test('a trial lists all lines that the schema refuses', async () => {
    const inputs = [{}, { name: 'x' }, {}];
    const trial = { dryRun: true };
    expect(await importInto('branches', inputs, trial)).toEqual([
      { added: 1, same: 0, refused: 2 },
      [expect.stringMatching(/^1: /), expect.stringMatching(/^3: /)],
      undefined,
    ]);
  });
});
