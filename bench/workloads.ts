export const statuses = ['available', 'pending', 'sold'] as const;
export type PetStatus = (typeof statuses)[number];

/** A client's operation, independent of the system. */
export type Operation =
  | { kind: 'list'; limit: number; status?: PetStatus; after?: number }
  | { kind: 'find'; id: number }
  | { kind: 'create'; name: string; categoryId: number; status: PetStatus };

export type Random = () => number;

/**
 * A list of operations that the load repeats. It is the same for every system.
 */
export interface Workload {
  title: string;
  writes: boolean;
  /** The number of requests to a process of its own, by one connection. */
  count?: number;
  operations(random: Random, petCount: number): Operation[];
}

const operationCount = 2000;
const hotPage: Operation = { kind: 'list', limit: 20 };

export const workloads: Record<string, Workload> = {
  fresh: {
    title: 'The first 10,000 requests of a process: the hot page',
    writes: false,
    count: 10_000,
    operations: () => [hotPage],
  },
  hot: {
    title: 'Hot page: the first 20 animals',
    writes: false,
    operations: () => [hotPage],
  },
  mixed: {
    title: 'Mixed pages: limit 1-100, any status or none, random `after`',
    writes: false,
    operations: (random, petCount) =>
      repeat(() => randomPage(random, petCount)),
  },
  one: {
    title: 'One animal by random id',
    writes: false,
    operations: (random, petCount) =>
      repeat(() => ({ kind: 'find', id: 1 + randomInteger(random, petCount) })),
  },
  create: {
    title: 'Create an animal',
    writes: true,
    operations: (random) => repeat(() => randomNewPet(random)),
  },
  mix: {
    title: 'Mix: 90% mixed pages, 10% creations',
    writes: true,
    operations: (random, petCount) =>
      repeat(() =>
        random() < 0.9 ? randomPage(random, petCount) : randomNewPet(random),
      ),
  },
};

/**
 * Mulberry32: the same numbers in every run, so that every system gets the same
 * requests.
 */
export function seededRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function repeat(make: () => Operation): Operation[] {
  return Array.from({ length: operationCount }, make);
}

function randomPage(random: Random, petCount: number): Operation {
  const status = [undefined, ...statuses][randomInteger(random, 4)];
  return {
    kind: 'list',
    limit: 1 + randomInteger(random, 100),
    after: randomInteger(random, petCount),
    ...(status && { status }),
  };
}

function randomNewPet(random: Random): Operation {
  const name = `Newcomer ${randomInteger(random, 1_000_000)}`;
  return {
    kind: 'create',
    name,
    categoryId: 1 + randomInteger(random, 500),
    status: statuses[randomInteger(random, 3)] ?? 'sold',
  };
}

function randomInteger(random: Random, below: number): number {
  return Math.floor(random() * below);
}
