import { type Call, unhurried } from '../call.ts';
import type { Batches } from '../database/batches.ts';
import type { Database } from '../database/database.ts';
import { isDataError, isWorthAnotherTry, outcomeUnknown } from '../database/driver-errors.ts';
import { isInt64 } from '../int64.ts';
import type { Pet } from './pet.entity.ts';
import { checkNewPet, checkPetQuery, exactInteger, type NewPet, type PetQuery, type Unchecked } from './pet.rules.ts';
import {
  frame,
  insertPets,
  longestShortName,
  type PetList,
  selectByIds,
  selectLists,
  selectLongList,
} from './pet.statements.ts';

/** One page of the catalogue, ascending by id. Requests that arrive together may share one, so it is read-only. */
export interface PetPage {
  readonly pets: readonly Pet[];
  /** True when there are animals after the last one here. */
  readonly hasNext: boolean;
  /** About how many bytes it takes as JSON. */
  readonly bytes: number;
}

export interface PetServiceOptions {
  /** Of a new animal's name, in characters (Unicode code points). */
  maxNameLength: number;
  /** Of a page, in bytes: it holds as many animals as fit, and at least one. */
  maxPageBytes: number;
}

const mebibyte = 1024 * 1024;

const reads = { maxBatch: 32, maxInFlight: 4, patience: 10, isRetryable: isWorthAnotherTry, maxSize: 16 * mebibyte };
const longReads = { ...reads, maxBatch: 1, maxInFlight: 1 };
// One batch of creations at a time and per node: the next one is gathered while this one is made durable.
const writes = {
  maxBatch: 256,
  maxInFlight: 1,
  patience: 1000,
  isRetryable: isDataError,
  tooLate: outcomeUnknown,
  maxSize: mebibyte,
  sizeOf: ({ name }: NewPet) => Buffer.byteLength(name),
};

/**
 * The catalogue of animals: all rules and all persistence of pets, for every face.
 * Input is taken as the client sent it and judged here.
 */
export class PetService {
  readonly #lists: Batches<PetQuery, PetPage | null>;
  readonly #longLists: Batches<PetQuery, PetPage>;
  readonly #finds: Batches<bigint, Pet | null>;
  readonly #creations: Batches<NewPet, Pet>;
  readonly maxNameLength: number;
  /** What an animal took lately: the next page is expected to be alike. */
  #bytesPerPet = frame;

  constructor(database: Database, { maxNameLength, maxPageBytes }: PetServiceOptions) {
    this.maxNameLength = maxNameLength;
    // Longer names are not read there: whoever asks for them must not seem to fill the queue for everybody.
    const sizeOf = ({ limit }: PetQuery) => limit * Math.min(this.#bytesPerPet, frame + longestShortName);
    this.#lists = database.batched((queries) => listPages(database, queries, maxPageBytes), { ...reads, sizeOf });
    this.#longLists = database.batched(([query]) => longPage(database, query as PetQuery, maxPageBytes), longReads);
    this.#finds = database.batched((ids) => selectByIds(database, ids), { ...reads, sizeOf: () => this.#bytesPerPet });
    this.#creations = database.batched((newPets) => insertPets(database, newPets), writes);
  }

  /**
   * Lists animals by ascending id: as many as asked, or, when that would be too large, as fit.
   *
   * @param query `status` filters; `limit` is 1 to 100, 20 when absent; `after` is an int64, the id of the last animal seen.
   * @param limitName what the face calls `limit`, for messages.
   * @throws StoreError BAD_USER_INPUT, naming every fault; SERVICE_UNAVAILABLE
   */
  async list(query: Unchecked<PetQuery>, call: Call = unhurried, limitName = 'limit'): Promise<PetPage> {
    const checked = checkPetQuery(query, limitName);
    const page = (await this.#lists.add(checked, call)) ?? (await this.#longLists.add(checked, call));
    const { length } = page.pets;
    if (length > 0) this.#bytesPerPet = Math.max(page.bytes / length, this.#bytesPerPet * 0.9);
    call.spend(page.bytes);
    return page;
  }

  /**
   * Adds an animal; it is durable when the promise resolves.
   *
   * @param newPet `name` a string without U+0000 and lone surrogates, of at most `maxNameLength` characters; `categoryId` an int64, a `bigint` or a safe
   *   `number`; `status` is `available` when absent. Other members are ignored.
   * @throws StoreError BAD_USER_INPUT, naming every fault; SERVICE_UNAVAILABLE, with `Retry-After` when it was not stored
   */
  async create(newPet: unknown, call: Call = unhurried): Promise<Pet> {
    const checked = checkNewPet(newPet, this.maxNameLength);
    call.spend(frame + Buffer.byteLength(checked.name));
    return this.#creations.add(checked, call);
  }

  /**
   * Fetches one animal.
   *
   * @param id an int64, a `bigint` or a safe `number`. Nothing else can be an animal's id, so there is no animal then.
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  async find(id: unknown, call: Call = unhurried): Promise<Pet | null> {
    const petId = exactInteger(id);
    const pet = isInt64(petId) ? await this.#finds.add(petId, call) : null;
    if (pet) call.spend(frame + Buffer.byteLength(pet.name));
    return pet;
  }
}

/** Reads one animal more than asked, to know whether there is a next page. Equal queries share one page. */
async function listPages(database: Database, queries: PetQuery[], maxBytes: number): Promise<Array<PetPage | null>> {
  const lists = await selectLists(database, queries.map(withOneMore));
  const pages = new Map<PetList | null, PetPage | null>();
  return lists.map((list, index) => {
    if (!pages.has(list)) pages.set(list, list && toPage(list, (queries[index] as PetQuery).limit, maxBytes));
    return pages.get(list) as PetPage | null;
  });
}

async function longPage(database: Database, query: PetQuery, maxBytes: number): Promise<PetPage[]> {
  const list = await selectLongList(database, withOneMore(query), maxBytes);
  const page = toPage(list, query.limit, maxBytes);
  return [{ ...page, hasNext: page.hasNext || list.isCut }];
}

function withOneMore(query: PetQuery): PetQuery {
  return { ...query, limit: query.limit + 1 };
}

function toPage({ pets, bytes }: PetList, limit: number, maxBytes: number): PetPage {
  const page = pets.slice(0, limit);
  const extra = pets[limit];
  let size = bytes + frame * page.length - Buffer.byteLength(extra?.name ?? '');
  while (size > maxBytes && page.length > 1) size -= frame + Buffer.byteLength(page.pop()?.name ?? '');
  return { pets: page, hasNext: page.length < pets.length, bytes: size };
}
