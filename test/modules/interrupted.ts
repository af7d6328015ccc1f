import { Call } from '#engine/call.js';
import { Database } from '#engine/database/database.js';
import { modelOf } from '#engine/process/model.js';
import { Records } from '#engine/records/records.js';
import { modules } from '../../src/modules.ts';
import { optionsFor } from '../support/database.ts';
import { ToyEntity, type Toys } from './toys/toy.entity.ts';
import { toysModule } from './toys/toys.module.ts';

/** A process that its test kills in the middle of its second transaction. */
const [, , env = ''] = process.argv;
const database = await Database.open(
  await optionsFor(JSON.parse(env)),
  modelOf([...modules, toysModule]),
);
const toys: Toys = new Records(database, ToyEntity);
// A live list follows it, so a transaction locks its ids.
toys.onInserted(() => undefined);
const add = (name: string, end: () => Promise<void>) =>
  database.transaction(
    new Call(),
    { creates: [ToyEntity], input: {} },
    async () => {
      for (const part of [1, 2]) {
        const toy = { name: `${name} ${part}`, kind: 'ball' };
        await toys.create({ ...toy, madeAt: new Date(0) } as never);
      }
      await end();
    },
  );
await add('kept', async () => undefined);
console.log('kept');
await add('lost', async () => {
  console.log('open');
  await new Promise(() => undefined);
});
