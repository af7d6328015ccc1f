import { booksModule } from '../../examples/own-service/src/books.ts';
import { features as all } from '../../src/features.ts';
import { modules as ofStore } from '../../src/modules.ts';

const named = process.env.TEST_WITHOUT ?? '';
const left = new Set(
  named === 'all' ? all.map(({ name }) => name) : named.split(','),
);
for (const { name, needs = [] } of all)
  if (needs.some((one) => left.has(one))) left.add(name);

/** Those of the store; with TEST_WITHOUT=pets another one in their place. */
export const modules = left.has('pets') ? [booksModule] : ofStore;

/** Those of the service, but for TEST_WITHOUT (`quota,pages`, or `all`). */
export const features = all.filter(({ name }) => !left.has(name));
