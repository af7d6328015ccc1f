import type { CallContext, IdempotencyClaim } from '../../call-context.ts';
import type { Database } from '../../database/database.ts';

import { type ListEvent, LiveList, type LiveQuery } from '../../records/live-list.ts';
import { Records } from '../../records/records.ts';
import type { Int64 } from '../../validation/int64.ts';
import type { Page, Total } from '../../validation/page.ts';
import { type Pet, PetEntity } from './pet.entity.ts';
import type { NewPet, PetQuery } from './pet.schemas.ts';

/** The catalogue of pets, for both APIs. Schemas have validated the input (pet.schemas.ts). */
export class PetService {
  readonly #pets: Records<Pet, NewPet>;
  readonly #live: LiveList<Pet>;

  constructor(database: Database) {
    this.#pets = new Records<Pet, NewPet>(database, PetEntity, { filters: ['status'] });
    this.#live = new LiveList(this.#pets);
  }

  /**
   * Lists pets by ascending id, all or those with one status.
   *
   * @throws DatabaseUnavailable
   */
  list(query: PetQuery, call?: CallContext): Promise<Page<Pet>> {
    return this.#pets.list(query, call);
  }

  /**
   * Counts the pets of a list, on all its pages.
   *
   * @throws DatabaseUnavailable
   */
  count(query: PetQuery, call?: CallContext): Promise<Total> {
    return this.#pets.count(query, call);
  }

  /**
   * Follows the list, optionally filtered by status: first the pets after an id, then each new pet.
   *
   * @throws DatabaseUnavailable
   */
  added(query: LiveQuery<Pet>): AsyncIterable<ListEvent<Pet>> {
    return this.#live.subscribe(query);
  }

  /**
   * Adds a pet, which is durable when the promise resolves.
   *
   * @param claim the client's idempotency key: a repeated request returns the same pet
   * @throws DatabaseUnavailable; with `claim` also StoreError IDEMPOTENCY_KEY_REUSED, IDEMPOTENCY_KEY_IN_USE,
   *   SERVICE_UNAVAILABLE
   */
  create(newPet: NewPet, call?: CallContext, claim?: IdempotencyClaim): Promise<Pet> {
    return this.#pets.create(newPet, call, claim);
  }

  /**
   * Fetches one pet.
   *
   * @param id undefined when the client's id is not an int64, so there is no such pet
   * @throws DatabaseUnavailable
   */
  find(id: Int64 | undefined, call?: CallContext): Promise<Pet | null> {
    return this.#pets.find(id, call);
  }
}
