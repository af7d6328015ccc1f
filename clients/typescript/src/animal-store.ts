import { type AddedOptions, added } from './added.ts';
import { type Answer, dataOf, readAs } from './answer.ts';
import { readRest, requireExactJson, writeGraphQL, writeRest } from './json.ts';
import { nextAfter } from './link.ts';
import {
  type Id,
  type IdType,
  type Int64,
  idAs,
  int64,
  isPet,
  isPets,
  type NewPet,
  type Pet,
  type PetStatus,
  type Sort,
  withIds,
} from './pet.ts';
import { unexpected } from './store-error.ts';
import {
  type CallOptions,
  succeeded,
  Transport,
  type TransportOptions,
} from './transport.ts';
import {
  type Following,
  type TypedDocument,
  textOf,
} from './typed-document.ts';

export interface AnimalStoreOptions<Ids extends IdType = 'bigint'>
  extends TransportOptions {
  /**
   * The type of ids: `bigint` by default, or `string` for programs that only
   * show them. Both are exact.
   */
  ids?: Ids | undefined;
  /**
   * The function `print` of `graphql`, needed for documents that are syntax
   * trees (`TypedDocumentNode`).
   */
  print?: ((document: never) => string) | undefined;
}

/** Options of a call that writes. */
export interface WriteOptions extends CallOptions {
  /**
   * The caller's name for the write, with which it can be repeated even after a
   * crash. Each call has a new one by default.
   */
  idempotencyKey?: string | undefined;
}

export interface CountOptions {
  /** Only animals with this status. */
  status?: PetStatus | undefined;
}

export interface PageOptions extends CountOptions {
  /** Size of the page. */
  limit?: number | undefined;
  /** Only animals after this id: the last one seen. */
  after?: Int64 | undefined;
  /** `id` by default; `id_desc` is newest first. */
  sort?: Sort | undefined;
}

export interface Count {
  total: number;
  /** False for an estimate: the service counts up to 100,000 animals. */
  isExact: boolean;
}

export interface Page<Ids extends IdType = 'bigint'> {
  /** In the order of `sort`. */
  items: Pet<Ids>[];
  /** The value of `after` for the next page; undefined on the last page. */
  next: Id<Ids> | undefined;
}

/**
 * A client of the animal store, over REST and GraphQL. Every call may throw a
 * `StoreError`.
 */
export class AnimalStore<Ids extends IdType = 'bigint'> {
  readonly #transport: Transport;
  readonly #ids: Ids;
  readonly #print: AnimalStoreOptions['print'];

  /**
   * @throws Error when this JavaScript engine cannot keep int64 exact;
   *   TypeError for an invalid URL or key
   */
  constructor({
    ids = 'bigint' as Ids,
    print,
    ...options
  }: AnimalStoreOptions<Ids>) {
    requireExactJson();
    this.#ids = ids;
    this.#transport = new Transport(options);
    this.#print = print;
  }

  /** Reads one page of the list. `limit` is 1 to 100, by default 20. */
  async page(
    { status, limit, after, sort }: PageOptions = {},
    options?: CallOptions,
  ): Promise<Page<Ids>> {
    const seen = after === undefined ? undefined : int64('after', after);
    const query = new URLSearchParams();
    if (status !== undefined) query.set('status', status);
    if (limit !== undefined) query.set('limit', `${limit}`);
    if (seen !== undefined) query.set('after', `${seen}`);
    if (sort !== undefined) query.set('sort', sort);
    return this.#transport.send(
      { path: `v1/pets${query.size > 0 ? `?${query}` : ''}` },
      (answer) => this.#pageOf(answer, seen, sort),
      options,
    );
  }

  /** Counts the animals, exactly up to 100,000. */
  async count(
    { status }: CountOptions = {},
    options?: CallOptions,
  ): Promise<Count> {
    const query = new URLSearchParams({
      limit: '1',
      ...(status !== undefined && { status }),
    });
    const request = {
      path: `v1/pets?${query}`,
      headers: { prefer: 'count=exact' },
    };
    return this.#transport.send(request, countOf, options);
  }

  /**
   * Iterates over all animals, and reads pages as needed. `limit` is the size
   * of a page, by default 100.
   */
  async *pets(
    { limit = 100, ...rest }: PageOptions = {},
    options?: CallOptions,
  ): AsyncGenerator<Pet<Ids>, void, undefined> {
    for (let after = rest.after; ; ) {
      const { items, next } = await this.page(
        { ...rest, limit, after },
        options,
      );
      yield* items;
      if (next === undefined) return;
      after = next;
    }
  }

  /**
   * Iterates over animals as they are added, each once, by ascending id. It
   * connects at the first `next`, and ends when the caller breaks or aborts. It
   * resumes a lost connection after the last animal, unless it gets none within
   * `timeoutMs`.
   */
  async *added(
    at: AddedOptions = {},
    options: CallOptions = {},
  ): AsyncGenerator<Pet<Ids>, void, undefined> {
    for await (const pet of added(this.#transport, at, options))
      yield withIds(this.#ids, pet);
  }

  /**
   * Adds an animal once, even if the request is repeated. @returns the animal
   * with its id
   */
  async create(
    pet: NewPet,
    { idempotencyKey, ...limits }: WriteOptions = {},
  ): Promise<Pet<Ids>> {
    const body = writeRest({
      ...pet,
      categoryId: int64('categoryId', pet.categoryId),
    });
    return this.#transport.send(
      { path: 'v1/pets', headers: written(idempotencyKey), body },
      this.#petOf,
      limits,
    );
  }

  /**
   * Reads one animal.
   *
   * @deprecated Use `pets` with a `status`; the service removes this operation
   *   on 5 December 2030.
   * @throws StoreError NOT_FOUND when there is none
   */
  async pet(id: Int64, options?: CallOptions): Promise<Pet<Ids>> {
    return this.#transport.send(
      { path: `v1/pets/${int64('id', id)}` },
      this.#petOf,
      options,
    );
  }

  /**
   * Runs a GraphQL operation. Mutations are as safe to repeat as `create`. A
   * `bigint` in the variables is sent as the digits of an `ID`; an `ID` in the
   * data is a `string`.
   *
   * @throws StoreError when the response has errors: all of them in `errors`,
   *   the partial data in `data`
   */
  async graphql<Data = unknown, Variables = Record<string, unknown>>(
    document: TypedDocument<Data, Variables>,
    ...[variables, { idempotencyKey, ...limits } = {}]: Following<
      Variables,
      WriteOptions
    >
  ): Promise<Data> {
    const body = writeGraphQL({
      query: textOf(document as never, this.#print),
      variables,
    });
    const accept = 'application/graphql-response+json, application/json;q=0.9';
    const headers = { ...written(idempotencyKey), accept };
    return this.#transport.send(
      { path: 'graphql', headers, body },
      dataOf<Data>,
      limits,
    );
  }

  readonly #petOf = (answer: Answer): Pet<Ids> =>
    withIds(this.#ids, readAs(succeeded(answer), readRest, isPet));

  #pageOf(answer: Answer, after: bigint | undefined, sort?: Sort): Page<Ids> {
    const pets = readAs(succeeded(answer), readRest, isPets);
    const next = idAs(
      this.#ids,
      nextAfter(answer, after, sort),
    ) as Page<Ids>['next'];
    return { items: pets.map((pet) => withIds(this.#ids, pet)), next };
  }
}

function countOf(answer: Answer): Count {
  const { status, headers } = succeeded(answer);
  const text = headers.get('x-total-count') ?? '';
  if (!/^\d+$/.test(text))
    throw unexpected('The answer has no number of animals.', status);
  return {
    total: Number(text),
    isExact: headers.get('preference-applied') === 'count=exact',
  };
}

/** Not `crypto.randomUUID`, which browsers offer only over HTTPS. */
function written(idempotencyKey?: string | null) {
  const numbers = crypto.getRandomValues(new Uint32Array(4));
  const random = Array.from(numbers, (n) => n.toString(36)).join('-');
  return {
    'content-type': 'application/json',
    // A program in JavaScript may give null.
    'idempotency-key': idempotencyKey ?? random,
  };
}
