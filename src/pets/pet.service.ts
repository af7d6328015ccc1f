import type { Call } from '../call.ts';
import type { Database } from '../database/database.ts';
import { Records } from '../database/records.ts';
import type { Int64 } from '../input/int64.ts';
import type { Page } from '../input/page.ts';
import { type Pet, PetEntity } from './pet.entity.ts';
import type { NewPet, PetQuery } from './pet.schemas.ts';

/** The catalogue of pets, for both APIs. Schemas have validated the input; its meaning is defined here. */
export class PetService {
  readonly #pets: Records<Pet, NewPet>;

  constructor(database: Database) {
    this.#pets = new Records<Pet, NewPet>(database, PetEntity, 'status');
  }

  /**
   * Lists pets by ascending id, all or those with one status.
   *
   * @throws StoreError BAD_USER_INPUT for a page that is too large; SERVICE_UNAVAILABLE
   */
  list(query: PetQuery, call?: Call): Promise<Page<Pet>> {
    return this.#pets.list(query, call);
  }

  /**
   * Adds a pet; it is durable when the promise resolves.
   *
   * @throws StoreError SERVICE_UNAVAILABLE, with `Retry-After` when it was not stored
   */
  create(newPet: NewPet, call?: Call): Promise<Pet> {
    return this.#pets.insert(newPet, call);
  }

  /**
   * Fetches one pet.
   *
   * @param id undefined when the client's id is not an int64, so there is no such pet
   * @throws StoreError SERVICE_UNAVAILABLE
   */
  find(id: Int64 | undefined, call?: Call): Promise<Pet | null> {
    return this.#pets.find(id, call);
  }
}
