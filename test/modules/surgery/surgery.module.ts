import { defineEntity } from '@mikro-orm/core';
import type { Module } from '#engine/api/module.js';
import {
  type ItemOf,
  type NewOf,
  resource,
} from '#engine/api/resources/resource.js';
import type { Call } from '#engine/call.js';
import type { Database } from '#engine/database/database.js';
import { Records } from '#engine/records/records.js';
import { textSchema } from '#engine/validation/schemas.js';
import { validator } from '#engine/validation/validator.js';
import { migrationOf } from '../../support/migrations.ts';

const owner = { member: 'clinic', by: 'tenant' } as const;
const indexes = [{ properties: ['clinic', 'id'] as never }];

const vet = resource({
  name: 'Vet',
  description: 'Somebody who treats animals.',
  path: '/vets',
  operations: ['list', 'create', 'follow'],
  members: { name: textSchema({ maxLength: 100, description: 'The name.' }) },
  owner,
});
type Vet = ItemOf<typeof vet>;
type NewVet = NewOf<typeof vet>;

const audit = resource({
  name: 'Audit',
  description: 'What has been done to a vet.',
  path: '/audits',
  operations: ['list'],
  members: { what: textSchema({ maxLength: 200, description: 'The deed.' }) },
  owner,
});
type Audit = ItemOf<typeof audit>;
type NewAudit = NewOf<typeof audit>;

const audited = validator(audit.schemas.input);

const VetEntity = defineEntity({
  name: 'Vet',
  tableName: 'vet',
  properties: vet.columns,
  indexes,
});
const AuditEntity = defineEntity({
  name: 'Audit',
  tableName: 'audit',
  properties: audit.columns,
  indexes,
});

/** Each creation leaves an audit, in its transaction. */
class AuditedVets extends Records<Vet, NewVet> {
  constructor(
    database: Database,
    private readonly audits: Records<Audit, NewAudit>,
    private readonly pause: Pause,
  ) {
    super(database, VetEntity, vet.lists);
  }

  override create(item: NewVet, call: Call) {
    const creates = [VetEntity, AuditEntity];
    return this.database.transaction(
      call,
      { creates, input: item },
      async () => {
        const made = await super.create(item, call);
        const what = `${made.name} was added.`;
        await this.audits.create(audited({ what }), call);
        await this.pause(made.name);
        return made;
      },
    );
  }
}

const table = (name: string, columns: string) => [
  `create table "${name}" ("id" bigserial primary key, ${columns},
    "clinic" text not null, "version" int not null default 1)`,
  `create index "${name}_clinic" on "${name}" ("clinic", "id")`,
];

/** What a transaction does before it ends. */
type Pause = (name: string) => Promise<unknown>;

/** A clinic is a tenant, whose writes leave an audit. */
export const surgeryWith = (pause: Pause): Module => ({
  tag: { name: 'Surgery', description: 'Vets, and what was done to them.' },
  entities: [VetEntity, AuditEntity],
  migrations: [
    migrationOf('2027_03_03_000000_create_surgery', [
      ...table('vet', '"name" text not null'),
      ...table('audit', '"what" text not null'),
    ]),
  ],
  open({ database }) {
    const audits = new Records<Audit, NewAudit>(
      database,
      AuditEntity,
      audit.lists,
    );
    const vets = new AuditedVets(database, audits, pause);
    return { resources: [vet.serve(vets), audit.serve(audits)] };
  },
});
