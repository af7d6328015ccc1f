import { coalesce } from '../database/coalesce.ts';
import type { Database } from '../database/database.ts';
import { isDataError } from '../database/driver-errors.ts';
import { isInt64 } from '../int64.ts';
import type { Pet } from './pet.entity.ts';
import { checkNewPet, checkPetQuery, exactInteger, type NewPet, type PetQuery, type Unchecked } from './pet.rules.ts';
import { insertPets, selectByIds, selectLists } from './pet.statements.ts';

/** One page of the catalogue, ascending by id. Requests that arrive together may share one, so it is read-only. */
export interface PetPage {
  readonly pets: readonly Pet[];
  /** True when there are animals after the last one here. */
  readonly hasNext: boolean;
}

const reads = { maxBatch: 32, maxInFlight: 4, patience: 10 };
// One batch of creations at a time and per node: the next one is gathered while this one is made durable.
const writes = { maxBatch: 256, maxInFlight: 1, patience: 1000 };

/**
 * The catalogue of animals: all rules and all persistence of pets, for every face.
 * Input is taken as the client sent it and judged here.
 */
export class PetService {
  readonly #list: (query: PetQuery) => Promise<PetPage>;
  readonly #find: (id: bigint) => Promise<Pet | null>;
  readonly #create: (newPet: NewPet) => Promise<Pet>;

  constructor(database: Database) {
    this.#list = coalesce((queries) => listPages(database, queries), reads, isDataError);
    this.#find = coalesce((ids) => selectByIds(database, ids), reads, isDataError);
    this.#create = coalesce((newPets) => insertPets(database, newPets), writes, isDataError);
  }

  /**
   * Lists animals by ascending id.
   *
   * @param query `status` filters; `limit` is 1 to 100, 20 when absent; `after` is an int64, the id of the last animal seen.
   * @param limitName what the face calls `limit`, for messages.
   * @throws StoreError BAD_USER_INPUT, naming every fault; SERVICE_UNAVAILABLE
   */
  async list(query: Unchecked<PetQuery>, limitName = 'limit'): Promise<PetPage> {
    return this.#list(checkPetQuery(query, limitName));
  }

  /**
   * Adds an animal; it is durable when the promise resolves.
   *
   * @param newPet `name` any string without U+0000 and lone surrogates; `categoryId` an int64, a `bigint` or a safe
   *   `number`; `status` is `available` when absent. Other members are ignored.
   * @throws StoreError BAD_USER_INPUT, naming every fault; SERVICE_UNAVAILABLE
   */
  async create(newPet: unknown): Promise<Pet> {
    return this.#create(checkNewPet(newPet));
  }

  /**
   * Fetches one animal.
   *
   * @param id an int64, a `bigint` or a safe `number`. Nothing else can be an animal's id, so there is no animal then.
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  async find(id: unknown): Promise<Pet | null> {
    const petId = exactInteger(id);
    return isInt64(petId) ? this.#find(petId) : null;
  }
}

/** Reads one animal more than asked, to know whether there is a next page. Equal queries share one page. */
async function listPages(database: Database, queries: PetQuery[]): Promise<PetPage[]> {
  const lists = await selectLists(
    database,
    queries.map((query) => ({ ...query, limit: query.limit + 1 })),
  );
  const pages = new Map<Pet[], PetPage>();
  return lists.map((pets, index) => {
    const limit = (queries[index] as PetQuery).limit;
    const page = pages.get(pets) ?? { pets: pets.slice(0, limit), hasNext: pets.length > limit };
    pages.set(pets, page);
    return page;
  });
}
