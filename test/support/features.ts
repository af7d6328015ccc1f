import { booksModule } from '../../examples/own-service/src/books.ts';
import { features as all } from '../../src/features.ts';
import { modules as ofStore } from '../../src/modules.ts';

/** The features of the service without these, and those that need them. */
export function without(names: string[]) {
  const left = new Set(names);
  for (const { name, needs = [] } of all)
    if (needs.some((one) => left.has(one))) left.add(name);
  return all.filter(({ name }) => !left.has(name));
}

const named = process.env.TEST_WITHOUT?.split(',') ?? [];

/** Those of the store; with TEST_WITHOUT=pets another one in their place. */
export const modules = named.includes('pets') ? [booksModule] : ofStore;

/** Those of the service, but for TEST_WITHOUT (`quota,pages`, or `all`). */
export const features = named.includes('all') ? [] : without(named);
