import type { Module } from '@animal-store/engine';
import { CreatePetAndApiKey } from '../../migrations/2026_11_20_120000_create_pet_and_api_key.ts';
import { PetEntity } from './pet.entity.ts';
import { petExamples } from './pet.examples.ts';
import { PetResolver } from './pet.resolver.ts';
import { petRoutes } from './pet.routes.ts';
import { samplePet } from './pet.sample.ts';
import { newPetSchema, petQuerySchema, petSchema } from './pet.schemas.ts';
import { PetService } from './pet.service.ts';

export const petsModule: Module<PetService> = {
  tag: { name: 'Pets', description: 'The catalogue of animals.' },
  entities: [PetEntity],
  migrations: [
    {
      name: '2026_11_20_120000_create_pet_and_api_key',
      class: CreatePetAndApiKey,
    },
  ],
  examples: petExamples,
  open({ database }) {
    const pets = new PetService(database);
    return {
      service: pets,
      collections: [
        {
          name: 'pets',
          isFollowed: true,
          input: newPetSchema,
          item: petSchema,
          query: petQuerySchema,
          service: pets,
          sample: samplePet,
        },
      ],
      routes: (app) => petRoutes(app, pets),
      resolvers: [new PetResolver(pets)],
      references: { Pet: (id, call) => pets.find(id, call) },
    };
  },
};
