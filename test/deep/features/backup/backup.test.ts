import { hash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { defineEntity, p } from '@mikro-orm/core';
import { ApiKey } from '#engine/access/keys/api-key.entity.js';
import { Database } from '#engine/database/database.js';
import { complete } from '#engine/feature.js';
import { backUp, restore } from '#engine/features/backup/backup.js';
import { modelOf } from '#engine/process/model.js';
import { PetEntity } from '../../../../src/pets/pet.entity.ts';
import { service } from '../../../../src/service.ts';
import { optionsFor } from '../../../support/database.ts';
import { sql } from '../../../support/database-access.ts';
import { foldersForEach } from '../../../support/fixtures.ts';
import { describe, expect, test } from '../../../support/jest.ts';
import { migrationOf, openNode } from '../../../support/migrations.ts';
import {
  bootstrapKey as BOOTSTRAP_API_KEY,
  cli,
  eventually,
  onPostgres,
  run,
  startServer,
} from '../../../support/process.ts';
import { rest } from '../../../support/rest.ts';
import { sessionWith } from '../../../support/session.ts';
import { contentsOf, onceMore, usedStoreIn } from './used-store.ts';

const modules = await complete(service).modules();
const folders = foldersForEach();
const env = () => ({ DATA_DIR: folders.store });
const fails = (text: string) => ({
  code: 1,
  stdout: '',
  stderr: `animal-store: ${text}\n`,
});
const newPet = (name = 'Rex') => ({
  method: 'POST',
  json: { name, categoryId: 1 },
});
/** The partial files of incomplete backups. */
const partialsOf = (file: string) =>
  readdirSync(dirname(file)).filter((name) =>
    name.startsWith(`${basename(file)}.`),
  );

/** The functions of the commands, in this process. */
const optionsOf = (DATA_DIR: string) => optionsFor({ DATA_DIR });
const progress = () => undefined;
const backingUp = async (
  file: string,
  force = false,
  model = modelOf(modules),
  { signal } = new AbortController(),
) =>
  backUp(file, await optionsOf(folders.store), model, {
    progress,
    force,
    signal,
  });
const restoring = async (file: string, DATA_DIR: string) =>
  restore(file, await optionsOf(DATA_DIR), modelOf(modules), progress);

/** Runs `work` with a store, and closes the store. */
async function inStore(
  DATA_DIR: string,
  work: (database: Database) => Promise<unknown>,
): Promise<void> {
  const { database } = await openNode({ env: { DATA_DIR } });
  await database.migrate();
  await work(database);
  await database.close();
}

const onEmbedded = onPostgres ? describe.skip : describe;

onEmbedded(
  'a backup of the embedded store (skipped on PostgreSQL, which has its own)',
  () => {
    test('is the same with and without a running service, is readable by its owner only, and restores every value, counter and key, even into a running service', async () => {
      const { key, contents } = await usedStoreIn(folders.store);
      const used = await startServer({ ...env(), BOOTSTRAP_API_KEY });
      const file = folders.file('running.ndjson');
      const running = await cli(['backup', file, '--json'], env());
      expect(running).toMatchObject({ code: 0, stderr: '' });
      const { tables, bytes } = JSON.parse(running.stdout);
      const pets = {
        table: 'pet',
        rows: contents.pet?.length,
        sha256: expect.stringMatching(/^[\da-f]{64}$/),
      };
      expect(tables).toContainEqual({ ...pets, counter: '29', greatest: '29' });
      expect(bytes).toBe(statSync(file).size);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(partialsOf(file)).toEqual([]);
      await used.stop();
      const streamed = await cli(['backup', '-'], env());
      expect(streamed).toMatchObject({
        code: 0,
        stdout: readFileSync(file, 'utf8'),
      });
      expect(streamed.stderr).toMatch(
        /^table .*\n(?:\w+ +\d+ +[\da-f]{16}\n)+standard output: \d+ bytes\n$/,
      );

      const DATA_DIR = await folders.another();
      const server = {
        ...(await startServer({ DATA_DIR, BOOTSTRAP_API_KEY })),
        key,
      };
      expect(
        (await rest(server, '/v1/pets', { key: BOOTSTRAP_API_KEY })).json,
      ).toEqual([]);
      const restored = await cli(['restore', file, '--json'], { DATA_DIR });
      expect(restored).toMatchObject({ code: 0, stderr: '' });
      expect(JSON.parse(restored.stdout)).toMatchObject({ file, applied: [] });
      const copied = async () => {
        const copy = await sessionWith(DATA_DIR);
        return contentsOf(copy).finally(() => copy.end());
      };
      expect(await copied()).toEqual(contents);
      const same = await cli(['restore', file, '--json'], { DATA_DIR });
      expect(same).toEqual(restored);
      expect(await copied()).toEqual(contents);
      const replayed = await rest(server, '/v1/pets', onceMore);
      expect([
        replayed.headers['idempotent-replayed'],
        replayed.json.id,
      ]).toEqual(['true', 29]);
      expect((await rest(server, '/v1/pets', newPet())).json.id).toBe(30);
      const full = `The store in ${DATA_DIR} (DATA_DIR) is not empty: `;
      const again = await cli(['restore', file], { DATA_DIR });
      expect(again).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringContaining(full),
      });
      expect(again.stderr).toMatch(
        /: api_key has 2 rows, .*, pet has \d+ rows\. Restore into a new one\.\n$/,
      );
      await server.stop();
      expect((await startServer({ DATA_DIR })).output.stdout).not.toContain(
        'API key',
      );
    });

    test('overwrites a file only with --force, and does not create a missing store', async () => {
      const none = `There is no store in ${folders.store} (DATA_DIR).`;
      await expect(backingUp(folders.file('none.ndjson'))).rejects.toThrow(
        none,
      );
      expect(existsSync(folders.store)).toBe(false);
      await usedStoreIn(folders.store);
      const file = folders.file('taken.ndjson');
      writeFileSync(file, 'mine');
      expect(await cli(['backup', file], env())).toMatchObject(
        fails(`${file} exists; --force overwrites it.`),
      );
      expect(readFileSync(file, 'utf8')).toBe('mine');
      await backingUp(file, true);
      expect(readFileSync(file, 'utf8')).toMatch(
        /^\{"format":"animal-store backup 1".*\n\{"tables":.*\}\n$/s,
      );
      // Even --force does not replace a device, a pipe or a link. The target of
      // this link does not exist.
      const link = folders.file('link.ndjson');
      symlinkSync(folders.file('nowhere'), link);
      await expect(backingUp(link, true)).rejects.toThrow(
        `${link} is not a regular file; it was not overwritten.`,
      );
      expect(lstatSync(link).isSymbolicLink()).toBe(true);
    });

    test('that is killed leaves no file of that name, and affects neither users of the store nor the next backup', async () => {
      await usedStoreIn(folders.store);
      const { database: user } = await openNode({ env: env() });
      // This transaction makes the backup wait for the store in the middle of
      // its work.
      const holder = await sessionWith(folders.store);
      await holder.query('begin');
      const file = folders.file('killed.ndjson');
      writeFileSync(`${file}.partial`, 'mine');
      const { child, ended } = run('cli', ['backup', file], env());
      await eventually(async () => partialsOf(file).length === 2);
      child.kill('SIGKILL');
      expect(await ended).toMatchObject({ code: null, signal: 'SIGKILL' });
      expect(existsSync(file)).toBe(false);
      const both = [
        run('cli', ['backup', file, '--force'], env()),
        run('cli', ['backup', file, '--force'], env()),
      ];
      await eventually(async () => partialsOf(file).length === 4);
      await holder.query('rollback');
      await holder.end();
      for (const { ended } of both)
        expect(await ended).toMatchObject({ code: 0, stderr: '' });
      expect(readFileSync(file, 'utf8')).toMatch(/"sha256":"[\da-f]{64}"\}\n$/);
      expect(readFileSync(`${file}.partial`, 'utf8')).toBe('mine');
      await user.ping();
      await user.close();
    });

    test('that is interrupted leaves no file, although the store does not answer', async () => {
      await usedStoreIn(folders.store);
      const { database: user } = await openNode({ env: env() });
      const holder = await sessionWith(folders.store);
      await holder.query('begin');
      const file = folders.file('interrupted.ndjson');
      const TMPDIR = dirname(folders.file('interrupted'));
      const before = readdirSync(TMPDIR);
      const added = () =>
        readdirSync(TMPDIR).filter((name) => !before.includes(name));
      for (const [signal, code] of [
        ['SIGINT', 130],
        ['SIGTERM', 143],
      ] as const) {
        for (const target of [file, '-']) {
          const { child, ended } = run('cli', ['backup', target], {
            ...env(),
            TMPDIR,
          });
          await eventually(async () => added().length === 1);
          child.kill(signal);
          expect(await ended).toMatchObject({
            code,
            signal: null,
            stdout: '',
            stderr: '',
          });
          expect(added()).toEqual([]);
        }
      }
      await holder.end();
      await user.close();
    });

    test('that is interrupted before its file is open leaves no file', async () => {
      await usedStoreIn(folders.store);
      const file = folders.file('early.ndjson');
      const controller = new AbortController();
      const interrupted = backingUp(file, false, modelOf(modules), controller);
      controller.abort();
      await expect(interrupted).rejects.toThrow('aborted');
      expect(partialsOf(file)).toEqual([]);
    });

    test('during writes has every creation acknowledged before it, and no creation without all earlier ones', async () => {
      const server = await startServer({ ...env(), BOOTSTRAP_API_KEY });
      const acknowledged: bigint[] = [];
      let isOver = false;
      const writers = Array.from({ length: 8 }, async (_, writer) => {
        for (let at = 0; !isOver; at += 1) {
          const { json } = await rest(
            server,
            '/v1/pets',
            newPet(`pet ${writer} ${at}`),
          );
          acknowledged.push(json.id);
        }
      });
      await eventually(async () => acknowledged.length >= 50);
      const before = [...acknowledged];
      const file = folders.file('busy.ndjson');
      expect(await cli(['backup', file], env())).toMatchObject({ code: 0 });
      const enough = acknowledged.length + 50;
      await eventually(async () => acknowledged.length >= enough);
      isOver = true;
      await Promise.all(writers);
      const ids = [
        ...readFileSync(file, 'utf8').matchAll(/^\{"id":(\d+),"name":"pet /gm),
      ].map(([, id]) => Number(id));
      // Ids are assigned in order, and no animal is removed, so there is no gap
      // up to the last id.
      expect(ids).toEqual(
        Array.from({ length: ids.length }, (_, at) => at + 1),
      );
      expect(ids.length).toBeGreaterThanOrEqual(
        Math.max(...before.map(Number)),
      );
      expect(ids.length).toBeLessThan(acknowledged.length);
    });

    test('that retires the store is refused while another process has it open', async () => {
      await usedStoreIn(folders.store);
      const { database: user } = await openNode({ env: env() });
      const file = folders.file('used.ndjson');
      expect(await cli(['backup', '--retire', file], env())).toMatchObject(
        fails(
          `Another process has the store in ${folders.store} open. Stop it, and run this again.`,
        ),
      );
      expect(existsSync(`${folders.store}/retired`)).toBe(false);
      await user.ping();
      await user.close();
    });

    test('that retires the store accepts no write after it has begun to read', async () => {
      await usedStoreIn(folders.store);
      const insertInto = async (folder: string) => {
        const session = await sessionWith(folder);
        await session.query(
          `insert into pet (name, category_id, status) values ('late', 1, 'sold')`,
        );
      };
      const late: Array<Promise<string>> = [];
      const file = folders.file('last.ndjson');
      await backUp(file, await optionsOf(folders.store), modelOf(modules), {
        retire: true,
        signal: new AbortController().signal,
        progress: () => {
          late.push(
            insertInto(folders.store).then(
              () => 'stored',
              () => 'refused',
            ),
          );
        },
      });
      expect(late.length).toBeGreaterThan(1);
      expect(new Set(await Promise.all(late))).toEqual(new Set(['refused']));
      const again = folders.file('again.ndjson');
      await backingUp(again);
      expect(readFileSync(again)).toEqual(readFileSync(file));
    });

    test('is refused for a store with objects that it would lack, and names them', async () => {
      await usedStoreIn(folders.store);
      const { database: user } = await openNode({ env: env() });
      const session = await sessionWith(folders.store);
      await session.query(`
        create view cheap as select id from pet; create table theirs (id int); alter table pet add color text;
        create function f() returns trigger language plpgsql as 'begin return new; end';
        create trigger mine before insert on api_key for each row execute function f()`);
      await session.end();
      await user.close();
      await expect(backingUp(folders.file('view.ndjson'))).rejects.toThrow(
        "The store holds objects that are not the service's, and a copy would lack them: " +
          'column pet.color, function f, table or view cheap, table or view theirs, trigger mine. Drop them first.',
      );
      expect(partialsOf(folders.file('view.ndjson'))).toEqual([]);
    });
  },
);

onEmbedded('restoring (skipped on PostgreSQL, which has its own)', () => {
  test('refuses an incomplete, changed or foreign file without creating a store, and restores all rows or none', async () => {
    await usedStoreIn(folders.store);
    const file = folders.file('one.ndjson');
    await backingUp(file);
    const whole = readFileSync(file, 'utf8');
    const DATA_DIR = resolve(await folders.another(), 'store');
    const last = whole.lastIndexOf('{"tables"');
    const ends = [
      whole.length - 2,
      last + 40,
      whole.indexOf('greatest'),
      whole.indexOf('\n') + 1,
    ];
    const refusals: Record<string, string[]> = {
      'is incomplete. Nothing was restored.': ends.map((end) =>
        whole.slice(0, end),
      ),
      'has been changed: its checksum is wrong. Nothing was restored.': [
        whole.replace('greatest', 'smallest'),
        whole.replace('"key":["id"]', '"key":["no"]'),
      ],
      'is not a file that begins with animal-store backup 1.': [
        whole.replace('backup 1', 'backup 2'),
        '-- animal-store backup 1\n-- and SQL\n',
        '',
        '{"format":1}\n{}\n',
        'select 1;\n',
        '[1]\n{}\n',
        'null\nnull\n',
      ],
    };
    for (const [why, contents] of Object.entries(refusals)) {
      for (const content of contents) {
        writeFileSync(file, content);
        await expect(restoring(file, DATA_DIR)).rejects.toThrow(
          `${file} ${why}`,
        );
      }
    }
    expect(await cli(['restore', file], { DATA_DIR })).toMatchObject(
      fails(`${file} is not a file that begins with animal-store backup 1.`),
    );
    expect(existsSync(DATA_DIR)).toBe(false);
    expect(readFileSync(file, 'utf8')).toBe('null\nnull\n');

    // A checksum that fits another content, as if the engine had changed a
    // value.
    const before = whole.slice(0, last).replace('greatest', 'smallest');
    writeFileSync(
      file,
      before +
        JSON.stringify({
          ...JSON.parse(whole.slice(last)),
          sha256: hash('sha256', before),
        }),
    );
    const message =
      'These tables differ from the backup: pet. Nothing was restored.';
    await expect(restoring(file, DATA_DIR)).rejects.toThrow(message);
    await inStore(DATA_DIR, async (database) =>
      expect(await sql(database, 'select from pet')).toEqual([]),
    );
  });

  test('compares a store that has as many rows, and says what differs', async () => {
    await usedStoreIn(folders.store);
    const file = folders.file('again.ndjson');
    await backingUp(file);
    const DATA_DIR = resolve(await folders.another(), 'store');
    await restoring(file, DATA_DIR);
    await inStore(DATA_DIR, (database) =>
      sql(database, `update pet set name = 'another'`),
    );
    const message =
      'These tables differ from the backup: pet. Nothing was restored.';
    await expect(restoring(file, DATA_DIR)).rejects.toThrow(message);
  });

  test('refuses tables that are not of its migrations, and says what differs', async () => {
    await usedStoreIn(folders.store);
    const file = folders.file('changed.ndjson');
    await backingUp(file);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    const [head, end] = [
      JSON.parse(lines[0] as string),
      JSON.parse(lines.at(-1) as string),
    ];
    /**
     * The backup with other members in its first and last line, and a checksum
     * that fits.
     */
    const write = (inHead: object, inEnd: object = {}) => {
      const text = `${[JSON.stringify({ ...head, ...inHead }), ...lines.slice(1, -1)].join('\n')}\n`;
      writeFileSync(
        file,
        `${text}${JSON.stringify({ ...end, sha256: hash('sha256', text), ...inEnd })}\n`,
      );
    };
    const DATA_DIR = resolve(await folders.another(), 'store');
    const differ = (names: string) =>
      `${file} has been changed: its tables and migrations differ in ${names}. Nothing was restored.`;
    const setting = {
      name: 'pg_db_role_setting',
      columns: { setrole: 'oid' },
      key: ['setrole'],
    };
    write(
      { tables: [...head.tables, setting] },
      {
        tables: [
          ...end.tables,
          {
            table: setting.name,
            rows: 0,
            sha256: hash('sha256', ''),
            counter: null,
            greatest: null,
          },
        ],
      },
    );
    await expect(restoring(file, DATA_DIR)).rejects.toThrow(
      differ('pg_db_role_setting.setrole'),
    );
    const [{ name, columns }] = head.tables;
    const names = Object.keys(columns).map((column) => `${name}.${column}`);
    write({ tables: head.tables.slice(1) }, { tables: end.tables.slice(1) });
    await expect(restoring(file, DATA_DIR)).rejects.toThrow(
      differ(names.sort().join(', ')),
    );
    write({});
    expect((await restoring(file, DATA_DIR)).tables).toEqual(end.tables);
  });

  test('migrates the backup of an earlier release, in a new folder', async () => {
    const model = modelOf(modules);
    const before = {
      ...model,
      entities: [PetEntity, ApiKey],
      migrations: model.migrations.slice(0, 2),
    };
    const earlier = await Database.open(await optionsOf(folders.store), before);
    await earlier.migrate();
    await sql(
      earlier,
      `insert into pet (name, category_id, status) values ('old', 1, 'sold')`,
    );
    await earlier.close();
    const file = folders.file('old.ndjson');
    const missing = model.migrations.slice(2).map(({ name }) => name);
    const lacking = `The store lacks migrations (${missing.join(', ')}). Run \`migrate\` first.`;
    await expect(backingUp(file)).rejects.toThrow(lacking);
    await backingUp(file, false, before);
    const DATA_DIR = await folders.another();
    const { stdout } = await cli(['restore', file, '--json'], { DATA_DIR });
    expect(JSON.parse(stdout).applied).toEqual(missing);
    await inStore(DATA_DIR, async (database) => {
      expect(await sql(database, 'select * from pet')).toEqual([
        ['1', 'old', '1', 'sold'],
      ]);
    });

    const newer = await folders.another();
    await inStore(newer, async () => undefined);
    await expect(restoring(file, newer)).rejects.toThrow(
      `The store in ${newer} (DATA_DIR) has had more migrations than the backup. Restore into a new one.`,
    );
  });

  test('migrates the backup of a release without a column of today', async () => {
    const model = modelOf(modules);
    const releaseWith = (properties: object, migrations: string[]) => {
      const id = p.bigint().primary().autoincrement();
      const Toy = defineEntity({
        name: 'Toy',
        properties: { id, ...properties },
      });
      const more = migrations.map((statement, at) =>
        migrationOf(`2999_01_0${at}_000000_toy`, [statement]),
      );
      return {
        entities: [...model.entities, Toy],
        migrations: [...model.migrations, ...more],
      };
    };
    const create = 'create table toy (id bigserial primary key)';
    const before = releaseWith({}, [create]);
    const add = `alter table toy add size text not null default 'small'`;
    const today = releaseWith({ size: p.text() }, [create, add]);
    const options = await optionsOf(folders.store);
    await Database.use(options, before, async (database) => {
      await database.migrate();
      await sql(database, 'insert into toy default values');
    });
    const file = folders.file('old.ndjson');
    await backingUp(file, false, before);
    const target = await optionsOf(await folders.another());
    const { applied } = await restore(file, target, today, progress);
    expect(applied).toEqual(['2999_01_01_000000_toy']);
    await Database.use(target, today, async (database) => {
      expect(await sql(database, 'select * from toy')).toEqual([
        ['1', 'small'],
      ]);
    });
  });

  test('refuses the backup of a newer release', async () => {
    const next = migrationOf('2999_01_01_000000_next', [
      'create index next on pet (name)',
    ]);
    const { database } = await openNode({ env: { DATA_DIR: folders.store } }, [
      next,
    ]);
    await database.migrate();
    await database.close();
    const file = folders.file('new.ndjson');
    const unknown =
      'is of a newer release, or of a part that is left out: this service does not know 2999_01_01_000000_next. Use that release, or list the part.';
    await expect(backingUp(file)).rejects.toThrow(`The store ${unknown}`);
    const model = modelOf(modules);
    await backingUp(file, false, {
      ...model,
      migrations: [...model.migrations, next],
    });
    await expect(restoring(file, await folders.another())).rejects.toThrow(
      `${file} ${unknown}`,
    );
  });

  test('keeps the id counter, also beside an id at the end of its range', async () => {
    await inStore(folders.store, async (database) => {
      await sql(
        database,
        `insert into pet (id, name, category_id, status) values (70, 'a', 1, 'sold'), ($1, 'b', 1, 'sold')`,
        ['9223372036854775807'],
      );
      await sql(database, 'delete from pet where id = 70');
      await sql(database, `select setval('pet_id_seq', 90)`);
    });
    const file = folders.file('far.ndjson');
    await backingUp(file);
    const DATA_DIR = await folders.another();
    expect(await cli(['restore', file], { DATA_DIR })).toMatchObject({
      code: 0,
      stderr: '',
    });
    const server = await startServer({ DATA_DIR, BOOTSTRAP_API_KEY });
    expect((await rest(server, '/v1/pets', newPet())).json).toMatchObject({
      id: 91,
    });
  });
});

test('with DATABASE_URL `backup` names the tool of PostgreSQL instead', async () => {
  const withUrl = { DATABASE_URL: 'postgres://shop:secret@127.0.0.1:1/shop' };
  const { stderr } = await cli(['backup', 'shop.dump'], withUrl);
  expect(stderr).toBe(
    'animal-store: DATABASE_URL is set, and PostgreSQL has its own tool: pg_dump --format=custom --file=shop.dump "$DATABASE_URL"\n',
  );
});
