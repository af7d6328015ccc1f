import {
  type Database,
  type ListEvent,
  LiveList,
  type LiveQuery,
  Records,
} from '@animal-store/engine';
import { PetEntity } from './pet.entity.ts';
import { type NewPet, type Pet, petLists } from './pet.schemas.ts';

/**
 * The catalogue of pets, for both APIs. Its lists have all pets, or those with
 * one status.
 */
export class PetService extends Records<Pet, NewPet> {
  readonly #live = new LiveList<Pet>(this);

  constructor(database: Database) {
    super(database, PetEntity, petLists);
  }

  /**
   * Follows the list: first the pets after an id, then each new pet.
   *
   * @throws Unavailable
   */
  added(query: LiveQuery<Pet>): AsyncGenerator<ListEvent<Pet>, void> {
    return this.#live.subscribe(query);
  }
}
