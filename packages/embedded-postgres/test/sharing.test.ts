import { readdirSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openEmbeddedPostgres } from '../src/postgres.ts';
import { afterEach, beforeEach, describe, expect, newFolder, sessionWith, test } from './support.ts';

let folder: string;
beforeEach(() => {
  folder = newFolder();
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('a store that is opened exclusively', () => {
  test('is not cut off in silence, admits no other process, and is opened by the one that waited', async () => {
    const own = await openEmbeddedPostgres(folder, { exclusive: true, maxSilence: 50 });
    const session = await sessionWith(own);
    await session.query('create table pet (id int); begin; insert into pet values (1)');
    await expect(sessionWith({ host: folder })).rejects.toThrow(/ENOENT/);
    const next = openEmbeddedPostgres(folder);
    expect(await Promise.race([next, sleep(500, 'waits')])).toBe('waits');
    await session.query('commit');
    await session.end();
    await own.close();
    const later = await sessionWith(await next);
    expect((await later.query('select id from pet')).rows).toEqual([{ id: 1 }]);
    await later.end();
    await (await next).close();
  });

  test('is refused while another process has it open, and refused to the next when it is retired', async () => {
    const other = await openEmbeddedPostgres(folder);
    await expect(openEmbeddedPostgres(folder, { exclusive: true })).rejects.toThrow(
      `Another process has the store in ${folder} (DATA_DIR) open. Stop it, and run this again.`,
    );
    await other.close();
    const own = await openEmbeddedPostgres(folder, { exclusive: true });
    const retired = `It is elsewhere. To use this store again nevertheless, remove ${folder}/retired.`;
    const waiting = openEmbeddedPostgres(folder);
    // It may be refused before the owner is closed.
    const refused = expect(waiting).rejects.toThrow(`The embedded store could not be opened: ${retired}`);
    await sleep(100);
    own.retire('It is elsewhere.');
    await own.close();
    await refused;
    await expect(openEmbeddedPostgres(folder)).rejects.toThrow(retired);
    expect(readdirSync(folder)).not.toContain('.s.PGSQL.5432');
  });
});
