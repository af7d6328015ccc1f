import { dataOf, readAs } from './answer.ts';
import { readIds, writeGraphQL } from './json.ts';
import { type Int64, int64, isPet, type Pet, type PetStatus } from './pet.ts';
import type { Attempts } from './retry.ts';
import type { CallOptions, Transport } from './transport.ts';

export interface AddedOptions {
  /** Only animals with this status. */
  status?: PetStatus | undefined;
  /** The animals after this id, and then new ones; without it new ones only. */
  after?: Int64 | undefined;
}

const query =
  'subscription ($after: ID, $status: PetStatus) { petAdded(after: $after, status: $status) { id name categoryId status } }';
const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };

/** Follows the list by one connection after the other, each from the last animal of the one before. */
export async function* added(
  transport: Transport,
  { after, status }: AddedOptions,
  options: CallOptions,
): AsyncGenerator<Pet, void> {
  const { signal } = options;
  let last = after === undefined ? undefined : int64('after', after);
  let isOpen = false;
  let attempts: Attempts | undefined = transport.attempts(options);
  for (;;) {
    try {
      const body = writeGraphQL({ query, variables: { after: last, status } });
      const text = transport.events({ path: 'graphql', headers, body }, signal, attempts?.left);
      for await (const block of blocksOf(text)) {
        // More may have come in one piece with the animal at which the caller gave up.
        signal?.throwIfAborted();
        const { id, data } = fieldsOf(block);
        const pet = data && petOf(data);
        // From the second connection on one that breaks before an animal or a heartbeat is another failure in a row.
        if (pet || block.startsWith(':') || !isOpen) attempts = undefined;
        isOpen = true;
        if (pet) {
          last = pet.id;
          yield pet;
          // Where the list began, as long as no animal says it.
        } else if (id) last ??= BigInt(id);
      }
    } catch (error) {
      attempts ??= transport.attempts(options, Number.POSITIVE_INFINITY);
      await attempts.next(error, signal);
    }
  }
}

/** Server-sent events; what a connection has not brought to its end is none. */
async function* blocksOf(text: AsyncIterable<string>): AsyncGenerator<string, void> {
  let rest = '';
  for await (const piece of text) {
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop() ?? '';
    yield* blocks;
  }
}

/** The service writes each field into one line. A pattern would find lines in names, at U+2028. */
function fieldsOf(block: string): { id?: string; data?: string } {
  return Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s, 2)));
}

/** @throws StoreError with what the service says instead */
function petOf(text: string): Pet {
  const answer = { status: 200, headers: new Headers(), text };
  const data = dataOf<{ petAdded: object }>(answer);
  return readAs(answer, () => readIds(data.petAdded), isPet);
}
