import { dataOf, readAs } from './answer.ts';
import { readIds, writeGraphQL } from './json.ts';
import { type Int64, int64, isPet, type Pet, type PetStatus } from './pet.ts';
import type { Attempts } from './retry.ts';
import { StoreError } from './store-error.ts';
import type { CallOptions, Transport } from './transport.ts';

export interface AddedOptions {
  /** Only animals with this status. */
  status?: PetStatus | undefined;
  /**
   * First the animals after this id, then new ones. Only new ones when absent.
   */
  after?: Int64 | undefined;
}

const query =
  'subscription ($after: ID, $status: PetStatus) { petAdded(after: $after, status: $status) { id name categoryId status } }';
const headers = {
  'content-type': 'application/json',
  accept: 'text/event-stream',
};

/**
 * Follows the list. Each connection continues after the last animal of the
 * previous one.
 */
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
      const text = transport.events(
        { path: 'graphql', headers, body },
        signal,
        attempts?.left,
      );
      for await (const block of blocksOf(text)) {
        // The caller may have aborted while several animals of one chunk were
        // pending.
        signal?.throwIfAborted();
        const { id, data } = fieldsOf(block);
        const pet = data && petOf(data);
        // A later connection that breaks before an animal or a heartbeat counts
        // as a consecutive failure.
        if (pet || block.startsWith(':') || !isOpen) attempts = undefined;
        isOpen = true;
        if (pet) {
          last = pet.id;
          yield pet;
          // The position at which the list began, until the first animal
          // arrives.
        } else if (id) last ??= BigInt(id);
      }
    } catch (error) {
      // The connection of a token that has expired is one that broke: the next
      // has another token.
      const hasExpired =
        !attempts &&
        transport.renewsKey &&
        (error as StoreError).code === 'UNAUTHENTICATED';
      const cause = hasExpired
        ? new StoreError('NETWORK_ERROR', 'The token has expired.', {
            cause: error,
          })
        : error;
      attempts ??= transport.attempts(options, Number.POSITIVE_INFINITY);
      await attempts.next(cause, signal);
    }
  }
}

/**
 * Splits a stream into server-sent events. An incomplete last event is dropped.
 */
async function* blocksOf(
  text: AsyncIterable<string>,
): AsyncGenerator<string, void> {
  let rest = '';
  for await (const piece of text) {
    const blocks = (rest + piece).split(/(?:\r\n|\n|\r(?!\n)){2}/);
    rest = blocks.pop() ?? '';
    yield* blocks;
  }
}

/**
 * The service writes each field on one line. A regular expression with `m`
 * would also split names at U+2028.
 */
function fieldsOf(block: string): { id?: string; data?: string } {
  return Object.fromEntries(
    block.split(/\r\n|\n|\r/).map((line) => line.split(/: ?(.*)/s, 2)),
  );
}

/** @throws StoreError for an event with errors */
function petOf(text: string): Pet {
  const answer = { status: 200, headers: new Headers(), text };
  const data = dataOf<{ petAdded: object }>(answer);
  return readAs(answer, () => readIds(data.petAdded), isPet);
}
