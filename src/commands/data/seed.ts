import type { Pick } from './collection.ts';
import type { Read } from './format.ts';

/** Plausible inputs, the same for the same seed, however many: those of 100 are the first of those of 1,000. */
export async function* samples(sample: (pick: Pick) => object, count: number, seed: number): AsyncGenerator<Read> {
  const random = randomFrom(seed);
  const pick: Pick = (members) => members[Math.floor(random() * members.length)] as (typeof members)[number];
  for (let line = 1; line <= count; line += 1) yield { line, input: sample(pick) };
}

/** Marsaglia's xorshift of 32 bits (https://www.jstatsoft.org/v08/i14/paper). @returns a function for numbers in [0, 1) */
function randomFrom(seed: number): () => number {
  // Its state is never 0, and seeds next to each other begin far apart.
  let state = Math.imul(seed + 1, 0x9e3779b1) | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
