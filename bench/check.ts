import { deepStrictEqual } from 'node:assert';
import type pg from 'pg';
import type { PetRow } from './adapters.ts';
import { type Server, send } from './server.ts';
import type { System } from './systems.ts';
import type { Operation } from './workloads.ts';

const columns = 'id, name, category_id as "categoryId", status';

/**
 * Compares a system's responses with the table before it is timed. @throws
 * Error with the system and the difference
 */
export async function check(
  { title, adapter, workloads }: System,
  server: Server,
  client: pg.Client,
): Promise<void> {
  const run = async (operation: Operation) =>
    adapter.pets(await send(server.base, adapter.request(operation)));
  const rows = async (condition: string) =>
    (
      await client.query<PetRow>(
        `select ${columns} from pet where ${condition}`,
      )
    ).rows;
  const expectSame = (actual: PetRow[], expected: PetRow[], name: string) =>
    deepStrictEqual(
      actual,
      expected,
      `${title}: ${name} is wrong: ${JSON.stringify({ actual, expected })}`,
    );

  expectSame(
    await run({ kind: 'list', limit: 20 }),
    await rows('true order by id limit 20'),
    'the first page',
  );
  if (workloads) return;

  const page = await run({
    kind: 'list',
    limit: 37,
    status: 'sold',
    after: 123,
  });
  expectSame(
    page,
    await rows(`status = 'sold' and id > 123 order by id limit 37`),
    'a filtered page',
  );
  expectSame(
    await run({ kind: 'list', limit: 100, after: 5 }),
    await rows('id > 5 order by id limit 100'),
    'a long page',
  );
  expectSame(
    await run({ kind: 'find', id: 321 }),
    await rows('id = 321'),
    'one pet',
  );

  const newPet = {
    name: `Newcomer "${title}" \u{1f43e}`,
    categoryId: 77,
    status: 'pending' as const,
  };
  const created = await run({ kind: 'create', ...newPet });
  const id = Number(created[0]?.id);
  expectSame(
    created,
    [{ id: String(id), ...newPet, categoryId: '77' }],
    'a created pet',
  );
  expectSame(await rows(`id = ${id}`), created, 'a created pet in the table');
  await client.query('delete from pet where id = $1', [id]);
}
