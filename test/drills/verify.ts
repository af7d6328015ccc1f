import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { Client } from './client.ts';
import type { Verdict } from './drill.ts';
import type { Service } from './service.ts';
import type { Tally } from './tally.ts';

/**
 * Prefix for names of pets that only produce load; `verify` ignores these pets.
 */
export const bulkPrefix = 'bulk ';

/**
 * Compares a load's responses with the database and with the pages of each
 * service process.
 *
 * @param database the current primary
 */
export async function verify(
  tally: Tally,
  database: string | pg.ClientConfig,
  services: Service[],
): Promise<Verdict> {
  const namesById = await readNames(database);
  const seen = await Promise.all(
    services.map((service) => readAllIds(service, tally)),
  );
  const isLost = (id: number, name: string) =>
    namesById.get(id) !== name || seen.some((ids) => !ids.has(id));
  const names = [...namesById.values()];
  const unique = new Set(names);
  return {
    lost: [...tally.acknowledged].filter(([id, { name }]) => isLost(id, name))
      .length,
    doubled: names.length - unique.size,
    refusedYetWritten: [...tally.refusedNames].filter((name) =>
      unique.has(name),
    ).length,
  };
}

async function readNames(
  database: string | pg.ClientConfig,
): Promise<Map<number, string>> {
  const client = new pg.Client(database);
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string; name: string }>(
      `select id, name from pet where name not like '${bulkPrefix}%'`,
    );
    return new Map(rows.map(({ id, name }) => [Number(id), name]));
  } finally {
    await client.end();
  }
}

/**
 * Tries three times, because a replica may lag behind the last creations of
 * other processes.
 */
async function readAllIds(
  service: Service,
  tally: Tally,
): Promise<Set<number>> {
  const client = new Client(service.origin);
  try {
    for (let attempt = 1; ; attempt++) {
      const seen = await readPages(client);
      if (
        attempt === 3 ||
        [...tally.acknowledged.keys()].every((id) => seen.has(id))
      )
        return seen;
      await pause(1000);
    }
  } finally {
    client.close();
  }
}

/**
 * Reads all pages. @throws Error when a page cannot be read or its ids do not
 * ascend
 */
async function readPages(client: Client): Promise<Set<number>> {
  const seen = new Set<number>();
  for (let after = 0; ; ) {
    const reply = await client.get(`/v1/pets?limit=100&after=${after}`);
    if (reply.kind !== 'answer' || reply.status !== 200)
      throw new Error(`A page cannot be read: ${JSON.stringify(reply)}`);
    const page: Array<{ id: number }> = JSON.parse(reply.text);
    if (page.length === 0) return seen;
    for (const { id } of page) {
      if (id <= after)
        throw new Error(
          `The ids of the page after ${after} do not ascend: ${reply.text}`,
        );
      after = id;
      seen.add(id);
    }
  }
}
