export const statuses = ['available', 'pending', 'sold'] as const;
export type PetStatus = (typeof statuses)[number];

/** What a client wants, before it is put in the words of one system. */
export type Operation =
  | { kind: 'list'; limit: number; status?: PetStatus; after?: number }
  | { kind: 'find'; id: number }
  | { kind: 'create'; name: string; categoryId: number; status: PetStatus };

export type Random = () => number;

/** A list of operations that the load repeats; the same list for every system. */
export interface Workload {
  title: string;
  writes: boolean;
  operations(random: Random, animals: number): Operation[];
}

const variety = 2000;
const hotPage: Operation = { kind: 'list', limit: 20 };

export const workloads: Record<string, Workload> = {
  hot: { title: 'Hot page: the first 20 animals', writes: false, operations: () => [hotPage] },
  mixed: {
    title: 'Mixed pages: limit 1-100, any status or none, random `after`',
    writes: false,
    operations: (random, animals) => many(() => anyPage(random, animals)),
  },
  one: {
    title: 'One animal by random id',
    writes: false,
    operations: (random, animals) => many(() => ({ kind: 'find', id: 1 + integer(random, animals) })),
  },
  create: { title: 'Create an animal', writes: true, operations: (random) => many(() => newPet(random)) },
  mix: {
    title: 'Mix: 90% mixed pages, 10% creations',
    writes: true,
    operations: (random, animals) => many(() => (random() < 0.9 ? anyPage(random, animals) : newPet(random))),
  },
};

/** Mulberry32: the same numbers in every run, so that every system answers the same questions. */
export function seededRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function many(make: () => Operation): Operation[] {
  return Array.from({ length: variety }, make);
}

function anyPage(random: Random, animals: number): Operation {
  const status = [undefined, ...statuses][integer(random, 4)];
  return { kind: 'list', limit: 1 + integer(random, 100), after: integer(random, animals), ...(status && { status }) };
}

function newPet(random: Random): Operation {
  const name = `Newcomer ${integer(random, 1_000_000)}`;
  return { kind: 'create', name, categoryId: 1 + integer(random, 500), status: statuses[integer(random, 3)] ?? 'sold' };
}

function integer(random: Random, below: number): number {
  return Math.floor(random() * below);
}
