import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formats } from '../../packages/item-files/src/formats.ts';
import { importFile } from '../../src/commands/transfer.ts';
import { citusLayout } from '../support/citus.ts';
import { sql } from '../support/database-access.ts';
import { newFolder } from '../support/folder.ts';
import { graphqlText } from '../support/graphql.ts';
import { afterAll, describe, expect, test } from '../support/jest.ts';
import { forgetFields } from '../support/resolvers.ts';
import { rest } from '../support/rest.ts';
import { storeForAll } from '../support/store.ts';
import { checkupsModule } from './checkups/checkups.module.ts';

/** A module whose rows refer to another table (docs/add-a-module.md). */

// Citus allows a foreign key between distributed tables only when both are distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

describeHere('checkups', () => {
  let rex = 0;
  let bello = 0;
  const addPets = async () => {
    for (const name of ['Rex', 'Bello']) await send('POST', '/v1/pets', { name, categoryId: 1 });
    [rex, bello] = (await send('GET', '/v1/pets')).json.map(({ id }: { id: number }) => id);
  };
  const store = storeForAll({}, addPets, { more: [checkupsModule] });
  afterAll(() => forgetFields(['pet', 'checkups']));

  const send = (method: string, path: string, json?: object, headers = {}) =>
    rest(store, path, { method, json, headers });
  const add = async (members: object = {}) =>
    (await send('POST', '/v1/checkups', { petId: rex, reason: 'vaccination', ...members })).json;
  const query = async (text: string, variables = {}) => graphqlText(store, { query: text, variables });
  const create = 'mutation ($input: NewCheckup!) { createCheckup(input: $input) { id petId price } }';

  const unknown = 9223372036854775807n;
  const noPet = 'petId must be the id of an existing Pet.';
  const refused = { code: 'BAD_USER_INPUT', message: noPet, status: 400 };

  test('have a foreign key, and the migration that MikroORM would write', async () => {
    expect(await store.database.orm.schema.getUpdateSchemaSQL()).toBe('');
    expect(await store.database.orm.schema.getCreateSchemaSQL()).toContain(
      'foreign key ("pet_id") references "pet" ("id") on delete cascade',
    );
  });

  test('refer to pets: another id is refused on both APIs, and the other creations of its batch are kept', async () => {
    const body = { petId: unknown, reason: 'x-ray' };
    const key = { 'idempotency-key': 'no-such-pet' };
    const responses = await Promise.all([
      send('POST', '/v1/checkups', { ...body, petId: rex }),
      send('POST', '/v1/checkups', body),
      send('POST', '/v1/checkups', { ...body, petId: bello }, { 'idempotency-key': 'bello' }),
      send('POST', '/v1/checkups', body, key),
    ]);
    expect(responses.map(({ status }) => status)).toEqual([201, 400, 201, 400]);
    expect([responses[1]?.json, responses[3]?.json]).toEqual([refused, refused]);
    const { data, errors } = await query(create, { input: { ...body, petId: `${unknown}` } });
    expect([data, errors]).toEqual([
      null,
      [{ message: noPet, path: ['createCheckup'], locations: expect.anything(), extensions: expect.anything() }],
    ]);
    expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', status: 400 });
  });

  test('are imported, except those of unknown pets', async () => {
    const file = join(await newFolder(), 'checkups.ndjson');
    const lines = [rex, unknown, bello].map((petId) => `{"petId":${petId},"reason":"import","price":"1.5"}\n`);
    writeFileSync(file, lines.join(''));
    const [collection] = checkupsModule.open({ database: store.database }).collections ?? [];
    const reasons: string[] = [];
    const watch = {
      signal: new AbortController().signal,
      progress: () => undefined,
      refused: (line: number, reason: string) => void reasons.push(`line ${line}: ${reason}`),
    };
    const options = { ...watch, format: formats.ndjson, maxLength: 10_000, again: false, dryRun: false };
    expect(await importFile(file, collection as never, options)).toEqual({ added: 2, same: 0, refused: 1 });
    expect(reasons).toEqual([`line 2: ${noPet}`]);
  });

  test('are nested in pets, and pets in them', async () => {
    const { id } = await add({ petId: bello });
    const { data } = await query(
      `{ checkup(id: "${id}") { petId pet { name checkups(limit: 100, after: "${id - 1}") { id pet { id } } } } }`,
    );
    const nested = { name: 'Bello', checkups: [{ id: `${id}`, pet: { id: `${bello}` } }] };
    expect(data).toEqual({ checkup: { petId: `${bello}`, pet: nested } });
  });

  test('disappear with their pet', async () => {
    const { json: pet } = await send('POST', '/v1/pets', { name: 'Milo', categoryId: 1 });
    const { id } = await add({ petId: pet.id });
    await sql(store.database, `delete from pet where id = ${pet.id}`);
    expect((await send('GET', `/v1/checkups/${id}`)).status).toBe(404);
  });

  describe('have an exact price', () => {
    const digits = '123456789012345678901234567890123456.78';

    test.each([
      ['0.1', '0.10'],
      ['12', '12.00'],
      ['-0.0', '0.00'],
      ['-7.25', '-7.25'],
      [digits, digits],
    ])('%s is read as %s on both APIs', async (given, read) => {
      const added = await add({ price: given });
      expect(added.price).toBe(read);
      expect((await send('GET', `/v1/checkups/${added.id}`)).json.price).toBe(read);
      const input = { petId: `${rex}`, reason: 'price', price: given };
      const { data } = await query(create, { input });
      expect(data.createCheckup.price).toBe(read);
      const found = await query(`{ checkup(id: "${data.createCheckup.id}") { price } }`);
      expect(found.data).toEqual({ checkup: { price: read } });
    });

    test('0.1 and 0.2 are 0.3', async () => {
      const ids = [await add({ price: '0.1' }), await add({ price: '0.2' })].map(({ id }) => id);
      expect(await sql(store.database, `select sum(price)::text from checkup where id in (${ids})`)).toEqual([
        ['0.30'],
      ]);
    });

    test.each(['0.001', '1e3', '', '.5', '01', '1'.repeat(37), 0.5])('%j is refused on both APIs', async (price) => {
      const { json } = await send('POST', '/v1/checkups', { petId: rex, reason: 'price', price });
      const like = `a decimal in a string, like "12.30", that matches ^(-?)(0|[1-9]\\d{0,35})(?:\\.(\\d{1,2}))?$, or null`;
      expect(json).toEqual({ ...refused, message: `price must be ${like}.` });
      const { errors } = await query(create, { input: { petId: `${rex}`, reason: 'price', price } });
      expect(errors?.map(({ extensions }) => extensions)).toEqual([{ code: 'BAD_USER_INPUT', status: 400 }]);
    });
  });
});
