import type { Module } from '#engine/api/module.js';
import type { PickOne } from '#engine/api/resources/collection.js';
import { LiveList } from '#engine/records/live-list.js';
import { Records } from '#engine/records/records.js';
import { validator } from '#engine/validation/validator.js';
import { petQuerySchema } from '../../../src/pets/pet.schemas.ts';
import { petsModule } from '../../../src/pets/pets.module.ts';
import { migrationOf } from '../../support/migrations.ts';
import { CheckupEntity, type Checkups } from './checkup.entity.ts';
import { CheckupResolver, CheckupsOfPetResolver } from './checkup.resolver.ts';
import { checkupRoutes } from './checkup.routes.ts';
import { checkupSchema, newCheckupSchema } from './checkup.schemas.ts';

export const checkupsModule: Module = {
  tag: { name: 'Checkups', description: 'Checkups of animals.' },
  entities: [CheckupEntity],
  migrations: [
    migrationOf('2027_01_02_000000_create_checkup', [
      `create table "checkup" ("id" bigserial primary key, "pet_id" bigint not null, "reason" text not null,
        "state" text not null, "note" text null, "price" numeric(38,2) null, "version" int not null default 1)`,
      'create index "checkup_pet_id_id_index" on "checkup" ("pet_id", "id")',
      'create index "checkup_state_id_index" on "checkup" ("state", "id")',
      'create index "checkup_pet_id_state_id_index" on "checkup" ("pet_id", "state", "id")',
      `alter table "checkup" add constraint "checkup_state_check" check ("state" in ('planned', 'done'))`,
      `alter table "checkup" add constraint "checkup_pet_id_foreign" foreign key ("pet_id") references "pet" ("id")
        on delete cascade`,
    ]),
  ],
  open({ database, serviceOf }) {
    const checkups: Checkups = new Records(database, CheckupEntity, {
      filters: ['petId', 'state'],
    });
    const pets = serviceOf(petsModule);
    const resolver = new CheckupResolver(
      checkups,
      new LiveList(checkups),
      pets,
    );
    const sample = async (pick: PickOne) => {
      const { items } = await pets.list(
        validator(petQuerySchema)({ limit: 100 }),
      );
      return {
        petId: pick(items).id,
        reason: pick(['vaccination', 'toothache']),
      };
    };
    return {
      collections: [
        {
          name: 'checkups',
          input: newCheckupSchema,
          item: checkupSchema,
          service: checkups,
          sample,
        },
      ],
      routes: (app) => checkupRoutes(app, checkups),
      resolvers: [resolver, new CheckupsOfPetResolver(checkups)],
    };
  },
};
