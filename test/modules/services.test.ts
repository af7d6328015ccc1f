// runs: embedded, postgres

import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Context, type Module, openModules } from '#engine/api/module.js';
import { Call } from '#engine/call.js';
import { loadConfig } from '#engine/config/config.js';
import { flag, text, type Variable } from '#engine/config/variables.js';
import { Database } from '#engine/database/database.js';
import { contracts } from '#engine/process/contracts.js';
import type { Int64 } from '#engine/validation/int64.js';
import { modules } from '../../src/modules.ts';
import { PetStatus } from '../../src/pets/pet.schemas.ts';
import type { PetService } from '../../src/pets/pet.service.ts';
import { petsModule } from '../../src/pets/pets.module.ts';
import { expect, test } from '../support/jest.ts';
import { serviceOf } from '../support/service.ts';
import { storeForAll } from '../support/store.ts';

/**
 * What `open` gets: the module's own variables, and the services of other
 * modules.
 */

const store = storeForAll();
const variables = { SHELTER_OPEN: flag(true, 'Takes animals in.') };

class Shelter {
  constructor(
    readonly pets: PetService,
    readonly isOpen: boolean,
  ) {}
}
const shelterModule: Module<Shelter, typeof variables> = {
  tag: { name: 'Shelter', description: 'The shelter.' },
  variables,
  open: ({ config, serviceOf }) => ({
    service: new Shelter(serviceOf(petsModule), config.SHELTER_OPEN),
  }),
};
const needing = (name: string, needs: () => Module): Module => ({
  tag: { name, description: name },
  open: ({ serviceOf }: Context) => ({ service: serviceOf(needs()) }),
});
const open = (all: Module[], env: Record<string, string> = {}) =>
  openModules(all, store.database, loadConfig(env, all).values);

test('a module has its own variables, and the one service of another module, in any order', () => {
  const guest = needing('Guest', () => shelterModule);
  const services = open([guest, shelterModule, ...modules], {
    SHELTER_OPEN: 'false',
  }).map(({ service }) => service);
  const [ofGuest, shelter, pets] = services;
  expect(shelter).toBeInstanceOf(Shelter);
  expect(ofGuest).toBe(shelter);
  expect((shelter as Shelter).pets).toBe(pets);
  expect((shelter as Shelter).isOpen).toBe(false);
  expect(open([...modules, shelterModule]).at(-1)?.service).toMatchObject({
    isOpen: true,
  });
});

test('the contracts that are compared before a migration know the own variables', async () => {
  const needy: Module<unknown, { OUTLET: Variable<string | undefined> }> = {
    tag: { name: 'Outlet', description: 'An outlet.' },
    variables: { OUTLET: text(undefined, 'Where it is.') },
    open({ config }) {
      if (config.OUTLET !== 'here') throw new Error('OUTLET is missing.');
      return {};
    },
  };
  const all = [...modules, needy];
  await expect(contracts(serviceOf(all))).rejects.toThrow('OUTLET is missing.');
  await contracts(serviceOf(all), { OUTLET: 'here', PORT: 'none' });
});

test('the database is closed after a module that cannot be built', async () => {
  const { close } = Database.prototype;
  let closed = 0;
  Database.prototype.close = function () {
    closed += 1;
    return close.call(this);
  };
  const faulty: Module = {
    tag: { name: 'Faulty', description: 'Does not open.' },
    open() {
      throw new Error('It does not open.');
    },
  };
  try {
    await expect(contracts(serviceOf([faulty]))).rejects.toThrow(
      'It does not open.',
    );
    expect(closed).toBe(1);
  } finally {
    Database.prototype.close = close;
  }
});

test('one call with an idempotency key creates several items, and repeats them', async () => {
  const pets = open(modules)[0]?.service as PetService;
  const createTwo = async () => {
    const call = new Call();
    call.claim = {
      keyId: 0,
      operation: 'createLitter',
      hash: hash('sha256', 'litter', 'buffer'),
    };
    const status = PetStatus.available;
    const create = (name: string) =>
      pets.create({ name, categoryId: 1n as Int64, status } as never, call);
    return [await create('Rex'), await create('Bella'), call.isReplay];
  };
  const first = await createTwo();
  expect(first).toMatchObject([{ name: 'Rex' }, { name: 'Bella' }, false]);
  expect(await createTwo()).toEqual([...first.slice(0, 2), true]);
});

test('docs/configuration.md lists the variables of the service and of its modules', async () => {
  const { variablesPage } = await import(resolve('tools/variables.mjs'));
  const page = readFileSync('docs/configuration.md', 'utf8');
  expect(variablesPage(modules)).toBe(page);
  const row =
    '| `SHELTER_OPEN` | `true` `false` | `true` | Takes animals in. |';
  expect(variablesPage([...modules, shelterModule])).toContain(row);
});

test.each<[string, () => unknown, string | RegExp]>([
  [
    'an invalid value',
    () =>
      open([...modules, shelterModule], { SHELTER_OPEN: 'perhaps', PORT: '0' }),
    /PORT must be .*\n.*SHELTER_OPEN must be true or false, not "perhaps"/,
  ],
  [
    'a module that is not listed',
    () => open([shelterModule]),
    'A module needs Pets, which the service does not list.',
  ],
  [
    'modules that need each other',
    () => {
      const one: Module = needing('One', () => other);
      const other: Module = needing('Other', () => one);
      return open([one, other]);
    },
    'One needs itself, through other modules.',
  ],
])('the service does not start with %s', (_what, start, message) => {
  expect(start).toThrow(message);
});
