// runs: embedded, postgres
import { Type } from 'typebox';
import type { Module } from '#engine/api/module.js';
import { operation } from '#engine/api/resources/operation.js';
import type { Call } from '#engine/call.js';
import {
  currentTransaction,
  type Database,
} from '#engine/database/database.js';
import { Records } from '#engine/records/records.js';
import { select } from '#engine/records/select.js';
import { Log } from '#engine/runtime/log/log.js';
import { textSchema } from '#engine/validation/schemas.js';
import { sql } from '../support/database-access.ts';
import { graphqlText } from '../support/graphql.ts';
import { describe, expect, test } from '../support/jest.ts';
import { rest } from '../support/rest.ts';
import { citusLayout } from '../support/servers/citus-database.ts';
import { onNode, storeForAll } from '../support/store.ts';
import { diariesModule } from './diaries/diaries.module.ts';
import {
  type Diary,
  DiaryEntity,
  diary,
  type NewDiary,
} from './diaries/diary.ts';

/** SQL of an author that names what does not exist. */

const found = Type.Object(
  { pages: Type.Integer({ minimum: 0, maximum: 9, description: 'Pages.' }) },
  { $id: 'Found', description: 'What is found.' },
);
type Diaries = Records<Diary, NewDiary>;
type Run = (call: Call, diaries: Diaries, database: Database) => unknown;
const wrong: Record<string, Run> = {
  column: (call, diaries) =>
    select(call, found)`select pagse as pages from ${diaries} as diary`,
  table: (call, diaries) =>
    select(call, found)`
      select 1 as pages from ${diaries} as diary join pagse on true`,
  entities: (call, _, database) =>
    database.reading(call, (em) => em.execute('select pagse from diary')),
  writes: () => currentTransaction()?.em.execute('update diary set pagse = 1'),
};
const note = Type.Optional(textSchema({ description: 'A note.' }));
const operations = Object.entries(wrong).map(([name, run]) => ({
  run,
  declared: operation({
    name,
    description: 'Is wrong',
    path: `/${name}`,
    input: Type.Object(
      { note },
      { $id: `Asked_${name}`, description: 'What is asked.' },
    ),
    output: Type.Array(found, { $id: `Found_${name}`, maxItems: 9 }),
    ...(name === 'writes' && { creates: [DiaryEntity] }),
  }),
}));
const wrongSql: Module = {
  tag: { name: 'Wrong', description: 'Wrong SQL.' },
  open({ database }) {
    const diaries: Diaries = new Records(database, DiaryEntity, diary.lists);
    return {
      resources: operations.map(({ declared, run }) =>
        declared.serve(
          database,
          async (_, call) => run(call, diaries, database) as never,
        ),
      ),
    };
  },
};

const describeHere = citusLayout ? describe.skip : describe;

describeHere('a service with wrong SQL', () => {
  const store = storeForAll({}, undefined, { more: [diariesModule, wrongSql] });
  describe.each(Object.keys(wrong))('in %s', (name) => {
    const method = name === 'writes' ? 'POST' : 'GET';
    const query =
      name === 'writes'
        ? 'mutation { writes(input: {}) { pages } }'
        : `{ ${name} { pages } }`;

    /** The answers of both APIs, and the errors in the log. */
    async function asked() {
      const lines: string[] = [];
      const write = (line: string) => void lines.push(line);
      const log = new Log({ level: 'info', sample: 1 }, { write });
      return onNode(
        store,
        {},
        async (node) => {
          const json = method === 'POST' ? {} : undefined;
          const answer = await rest(node, `/v1/${name}`, { method, json });
          const { errors } = await graphqlText(node, { query });
          const failures = lines
            .map((line) => JSON.parse(line))
            .filter(({ level }) => level === 50);
          return {
            answers: [answer.json, errors?.[0]],
            failures: failures.map(({ err }) => err.message),
          };
        },
        { log },
      );
    }

    test('it is an internal error, and only the log says what', async () => {
      const { answers, failures } = await asked();
      const message = 'The service failed to answer this request.';
      const code = 'INTERNAL_SERVER_ERROR';
      expect(answers).toEqual([
        { code, message, status: 500 },
        expect.objectContaining({ message, extensions: { code, status: 500 } }),
      ]);
      const named = expect.stringMatching(/pagse.* does not exist/);
      expect(failures).toEqual([named, named]);
    });

    test.each([
      [
        'a migration is not applied',
        `update mikro_orm_migrations set name = 'x' where name like '2027_03%'`,
        `update mikro_orm_migrations set name = '2027_03_01_000000_create_diaries' where name = 'x'`,
      ],
      [
        'a column of an entity is missing',
        'alter table remark rename "text" to other',
        'alter table remark rename other to "text"',
      ],
      [
        'a table of an entity is missing',
        'alter table remark rename to other',
        'alter table other rename to remark',
      ],
    ])('it is temporary while %s', async (_, before, after) => {
      await sql(store.database, before);
      const { answers, failures } = await asked().finally(() =>
        sql(store.database, after),
      );
      const message = 'The database has not been migrated.';
      expect(answers).toMatchObject([
        { code: 'SERVICE_UNAVAILABLE', message },
        { message },
      ]);
      expect(failures).toEqual([]);
    });
  });
});
