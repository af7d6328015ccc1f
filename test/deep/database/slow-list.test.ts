import { storeErrorOf } from '../../../src/errors.ts';
import { petQuerySchema } from '../../../src/pets/pet.schemas.ts';
import { PetService } from '../../../src/pets/pet.service.ts';
import { checker } from '../../../src/storage/input/check.ts';
import { sql } from '../../support/database-access.ts';
import { expect, test } from '../../support/jest.ts';
import { ownsSessions } from '../../support/process.ts';
import { storeForAll } from '../../support/store.ts';

const store = storeForAll({ DATABASE_STATEMENT_TIMEOUT_MS: '1000' });

/** Whoever reads an animal that was sold waits for longer than a statement may take. */
async function makeSoldSlow(): Promise<void> {
  await sql(store.database, 'alter table pet rename to shelf');
  const isSlow = `case when status = 'sold' then pg_sleep(60) is not null else true end`;
  await sql(store.database, `create view pet as select id, name, category_id, status from shelf where ${isSlow}`);
}

(ownsSessions ? test : test.skip)(
  'a list that takes too long does not fail those that travel with it (PostgreSQL only: it gives up statements; not through a pooler, where the role says when)',
  async () => {
    const names = ['Rex', 'Bella', 'Tom'];
    const statuses = ['available', 'pending', 'sold'];
    const text = `insert into pet (name, category_id, status) select name, 5, status from unnest($1::text[], $2::text[]) as p (name, status)`;
    await sql(store.database, text, [names, statuses]);
    await makeSoldSlow();

    // What is asked for in one turn of the event loop travels together.
    const pets = new PetService(store.database);
    const query = checker(petQuerySchema);
    const [sold, ...others] = await Promise.allSettled([
      pets.list(query({ status: 'sold' })),
      pets.list(query({ status: 'available', limit: 1 })),
      pets.list(query({ status: 'pending' })),
      pets.list(query({ status: 'available' })),
    ]);
    expect(sold).toMatchObject({ status: 'rejected' });
    const failure = storeErrorOf((sold as PromiseRejectedResult).reason);
    expect(failure).toMatchObject({ code: 'SERVICE_UNAVAILABLE', status: 503 });
    expect(others).toMatchObject([
      { status: 'fulfilled', value: { items: [{ name: 'Rex' }] } },
      { status: 'fulfilled', value: { items: [{ name: 'Bella' }] } },
      { status: 'fulfilled', value: { items: [{ name: 'Rex' }] } },
    ]);
  },
);
