// runs: embedded, postgres, citus-shards

import { defineEntity } from '@mikro-orm/core';
import { type Static, Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { columnsOf } from '#engine/records/columns.js';
import { Records } from '#engine/records/records.js';
import {
  decimalSchema,
  int64Schema,
  nullable,
  textSchema,
  versionSchema,
} from '#engine/validation/schemas.js';
import { PetEntity } from '../../src/pets/pet.entity.ts';
import type { Pet } from '../../src/pets/pet.schemas.ts';
import { sql } from '../support/database-access.ts';
import { expect, test } from '../support/jest.ts';
import { migrationOf } from '../support/migrations.ts';
import { eventually, onPlainPostgres } from '../support/process.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { openSession } from '../support/session.ts';
import { storeForAll } from '../support/store.ts';

/**
 * The statements of changes and removals, on every database: those of checkups
 * need a foreign key.
 */

const offerSchema = Type.Object({
  id: int64Schema({ description: 'Its identifier.' }),
  title: textSchema({ description: 'What is offered.' }),
  price: nullable(decimalSchema(12, 2, { description: 'What it costs.' })),
  rate: nullable(decimalSchema(2, 2, { description: 'The rate of its tax.' })),
  version: versionSchema,
});
type Offer = Static<typeof offerSchema>;
// A statement has the name of the table, too.
const OfferEntity = defineEntity({
  name: 'Offer',
  tableName: 'found',
  properties: columnsOf(offerSchema),
});
const offersModule: Module = {
  tag: { name: 'Offers', description: 'Offers.' },
  entities: [OfferEntity],
  migrations: [
    migrationOf('2027_01_03_000000_create_offer', [
      `create table found (
        id bigserial primary key, title text not null, price numeric(12,2), rate numeric(2,2), version int not null default 1)`,
    ]),
  ],
  open: () => ({}),
};

const store = storeForAll({}, undefined, { more: [offersModule] });
const open = () =>
  new Records<
    Offer,
    Pick<Offer, 'title' | 'price'> & Partial<Pick<Offer, 'rate'>>
  >(store.database, OfferEntity);
const change = (
  offers: ReturnType<typeof open>,
  id: Offer['id'],
  members: object,
) => offers.change(id, members as never);

test('a removal from a table without versions takes none', async () => {
  const pets = new Records<Pet, Omit<Pet, 'id'>>(store.database, PetEntity);
  const { id } = await pets.create({
    name: 'Rex',
    categoryId: 5n as Pet['categoryId'],
    status: 'sold',
  });
  const refusal = {
    code: 'BAD_USER_INPUT',
    message: 'It has no version to compare.',
  };
  await expect(pets.remove(id, { version: 0 } as never)).rejects.toMatchObject(
    refusal,
  );
  expect(await pets.remove(id, {} as never)).toBe(true);
});

test('a change sets what it names if the version is the current one, and a removal removes', async () => {
  const offers = open();
  const [{ id }, other] = await Promise.all([
    offers.create({ title: 'Bed', price: '9.5' }),
    offers.create({ title: 'Bowl', price: null }),
  ]);
  const bed = { id, title: 'Bed', price: null, rate: null, version: 2 };
  expect(await change(offers, id, { version: 1, price: null })).toEqual(bed);
  const box = { id, title: 'Box', price: '1.00', rate: '0.07', version: 3 };
  expect(
    await change(offers, id, {
      version: 2,
      title: 'Box',
      price: '1',
      rate: '0.07',
    }),
  ).toEqual(box);
  const stale = {
    code: 'CONFLICT',
    message: 'It has version 3, not 2: read it again.',
    details: { version: 3 },
  };
  await expect(
    change(offers, id, { version: 2, title: 'x' }),
  ).rejects.toMatchObject(stale);
  await expect(
    offers.remove(id, { version: 2 } as never),
  ).rejects.toMatchObject(stale);
  expect(await offers.remove(id, { version: 3 } as never)).toBe(true);
  expect(await offers.remove(id, {} as never)).toBeNull();
  expect(await change(offers, id, { version: 3, title: 'x' })).toBeNull();
  expect(await offers.find(id)).toBeNull();
  expect(await offers.find(other.id)).toEqual({
    ...other,
    title: 'Bowl',
    price: null,
    rate: null,
    version: 1,
  });
});

test('of changes that read the same version one wins', async () => {
  const offers = open();
  const { id } = await offers.create({ title: 'Bed', price: null });
  const results = await Promise.allSettled(
    Array.from({ length: 12 }, (_, at) =>
      change(offers, id, { version: 1, title: `${at}` }),
    ),
  );
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(
    1,
  );
  expect(await offers.find(id)).toMatchObject({ version: 2 });
});

(onPlainPostgres ? test : test.skip)(
  'of changes in different statements, which wait for the same row, one wins (PostgreSQL only, not Citus: the embedded store has one backend)',
  async () => {
    const { id } = await open().create({ title: 'Bed', price: null });
    const { url = '' } = (store.database as any).options;
    const holder = await openSession({ env: { DATABASE_URL: url } });
    try {
      await holder.query('begin');
      await holder.query(`select from found where id = ${id} for update`);
      const results = Promise.allSettled(
        ['one', 'other'].map((title) =>
          change(open(), id, { version: 1, title }),
        ),
      );
      const waiting = `select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      await eventually(
        async () => Number((await holder.query(waiting)).rows[0].count) === 2,
      );
      await holder.query('commit');
      const statuses = (await results).map(({ status }) => status).sort();
      expect(statuses).toEqual(['fulfilled', 'rejected']);
    } finally {
      await holder.end();
    }
  },
);

// Citus has no triggers.
const ofTriggers = citusLayout ? test.skip : test;
ofTriggers(
  'a row that a trigger keeps as it is refuses a change and a removal',
  async () => {
    const offers = open();
    const { id } = await offers.create({ title: 'Rock', price: null });
    for (const text of [
      'create function keep() returns trigger language plpgsql as $$ begin return null; end $$',
      `create trigger keep before update or delete on found for each row when (old.title = 'Rock') execute function keep()`,
    ])
      await sql(store.database, text);
    const refusal = {
      code: 'BAD_USER_INPUT',
      message: 'A rule of the database refuses this.',
    };
    const refused = (written: Promise<unknown>) =>
      expect(written).rejects.toMatchObject(refusal);
    await refused(change(offers, id, { version: 1, title: 'Sand' }));
    await refused(offers.remove(id, {} as never));
    await refused(offers.remove(id, { version: 1 } as never));
    const stale = change(offers, id, { version: 2, title: 'Sand' });
    await expect(stale).rejects.toMatchObject({ code: 'CONFLICT' });
  },
);

test('a member without a column is ignored, by a change as by a creation', async () => {
  const offers = open();
  const more = { extra: 'none' };
  const { id, version } = await offers.create({
    title: 'Vase',
    price: null,
    ...more,
  });
  const changed = await change(offers, id, { version, title: 'Jug', ...more });
  expect(changed).toMatchObject({ id, title: 'Jug' });
  expect(changed).not.toHaveProperty('extra');
  const { version: next } = changed ?? {};
  const same = await change(offers, id, { version: next, ...more });
  expect(same).toMatchObject({ id, title: 'Jug' });
});
