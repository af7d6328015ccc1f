import { hash } from 'node:crypto';
import type { Collection, PickOne } from '../../api/resources/collection.ts';
import type { Line } from './formats.ts';
import { importLines } from './import.ts';
import type { Report, Transfer } from './types.ts';

export interface SeedFlags {
  count: number;
  seed: number;
}

/** Adds sample items. */
export async function seed(
  transfer: Transfer,
  flags: SeedFlags,
): Promise<Report> {
  const { name, sample } = transfer.collection;
  if (sample) return importLines(samples(sample, flags), transfer);
  throw new Error(
    `The collection ${name} defines no sample data, so it cannot be seeded.`,
  );
}

/** Generates the same items for the same seed, whatever the count. */
async function* samples(
  sample: NonNullable<Collection['sample']>,
  { count, seed }: SeedFlags,
): AsyncGenerator<Line> {
  let picked = 0;
  const pick: PickOne = (members) => {
    if (members.length === 0)
      throw new Error(
        'There is nothing to pick: first seed what the samples refer to.',
      );
    const digest = hash('sha256', `${seed} ${picked++}`, 'buffer');
    const at = digest.readUInt32LE() % members.length;
    return members[at] as (typeof members)[number];
  };
  for (let line = 1; line <= count; line += 1)
    yield { line, input: await sample(pick) };
}
