import { CreatePetAndApiKey } from '../../migrations/2026_11_20_120000_create_pet_and_api_key.ts';
import { checker } from '../input/check.ts';
import type { Module } from '../module.ts';
import { PetEntity } from './pet.entity.ts';
import { PetResolver } from './pet.resolver.ts';
import { petRoutes } from './pet.routes.ts';
import { newPetSchema } from './pet.schemas.ts';
import { PetService } from './pet.service.ts';

const example = `query Pets {
  pets(limit: 5) {
    id
    name
    categoryId
    status
  }
}
`;

/** The catalogue of pets. */
export const petsModule: Module = {
  tag: { name: 'Pets', description: 'The catalogue of animals.' },
  entities: [PetEntity],
  migrations: [{ name: '2026_11_20_120000_create_pet_and_api_key', class: CreatePetAndApiKey }],
  example,
  open({ database, maxTextLength }) {
    const pets = new PetService(database);
    const newPetOf = checker(newPetSchema(maxTextLength), { isText: true });
    return {
      routes: (app) => petRoutes(app, pets, maxTextLength),
      resolvers: [new PetResolver(pets, newPetOf)],
    };
  },
};
