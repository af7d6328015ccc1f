import { defineEntity, p } from '@mikro-orm/core';
import { Query, Resolver } from 'type-graphql';
import { Type } from 'typebox';
import type { Routes } from '#engine/api/http/routes.js';
import type { Module } from '#engine/api/module.js';
import { resource } from '#engine/api/resources/resource.js';
import { success } from '#engine/api/rest/documented-responses.js';
import { Records } from '#engine/records/records.js';
import { kinds } from '#engine/validation/kinds.js';
import { ofKind } from '#engine/validation/rules.js';
import {
  decimalSchema,
  int64Schema,
  nullable,
  textSchema,
} from '#engine/validation/schemas.js';
import { toysModule } from '../toys/toys.module.ts';

const sizeSchema = (description: string) => {
  const kind = { ...kinds.uuid, graphql: { name: 'Size', description } };
  return Type.Unsafe<string>({ type: 'string', description, [ofKind]: kind });
};

/** Every line with a comment has a mistake. */
const members = {
  ownerId: int64Schema({ description: 'Who owns it.' }),
  price: decimalSchema(12, 2, { description: 'What it costs.' }),
  // It may be absent, and not null.
  note: Type.Optional(textSchema({ description: 'Anything.' })),
  // No column follows.
  tags: Type.Array(Type.Integer({ minimum: 0, maximum: 9 }), {
    maxItems: 5,
    description: 'Its tags.',
  }),
  // No bounds.
  length: Type.Integer({ description: 'Its length.' }),
  // No description.
  colour: Type.Optional(nullable(Type.String({ maxLength: 50 }))),
  // Too long for a page.
  story: textSchema({ maxLength: 30_000, description: 'Its story.' }),
  sort: textSchema({ description: 'What sort it is.' }),
  height: sizeSchema('Up.'),
  // Another kind has the name of its GraphQL type.
  width: sizeSchema('Across.'),
};

const kennel = resource({
  name: 'Kennel',
  description: 'Where a dog sleeps.',
  path: '/kennels',
  operations: ['list', 'create'],
  members,
  // No index for either, and a name that lists have.
  filters: ['length', 'sort'],
  // No member.
  orders: ['age' as 'length'],
  // Its lists by owner are not declared; no such relation; one is a member.
  relations: {
    colour: { by: 'ownerId', to: (): never => kennel.type as never },
    owner: {
      by: 'ownerId',
      to: (): never => kennel.type as never,
      list: 'kennels',
      across: { list: 'dogs', relation: 'dog' },
    },
  },
});

const KennelEntity = defineEntity({
  name: 'Kennel',
  // No migration makes this table.
  tableName: 'kennel',
  properties: {
    ...kennel.columns,
    // No index begins with it, and it is never null.
    ownerId: () =>
      p
        .manyToOne(KennelEntity)
        .mapToPk()
        .joinColumn('owner_id')
        .deleteRule('set null'),
    // Other digits.
    price: p.decimal().precision(10).scale(1),
    // A type that `Records` does not read.
    story: p.string().length(10),
  },
});

const thing = { 200: success(Type.Object({}, { $id: 'Pet' }), 'A thing.') };
const summary = 'Do it';

function routes(app: Routes): void {
  const answer = async () => ({});
  // The operationId and the schema of pets, and no summary.
  const list = { operationId: 'listPets', response: thing };
  app.get('/things', { schema: list }, answer);
  // No schema for its body.
  app.post('/things', { schema: { operationId: 'addThing', summary } }, answer);
  // The route is there.
  app.get('/things', { schema: { operationId: 'things', summary } }, answer);
}

@Resolver()
class Mistakes {
  // Pets have this field; no cost.
  @Query(() => [String], { description: 'All pets.' })
  pets() {
    return [];
  }

  // No description.
  @Query(() => String)
  mistake() {
    return '';
  }
}

export const mistakesModule: Module = {
  tag: { name: 'Mistakes', description: 'Every mistake.' },
  entities: [KennelEntity],
  open({ database }) {
    const kennels = new Records<any, any>(database, KennelEntity, {
      filters: ['length', 'ownerId'],
      orders: ['length'],
    });
    return {
      routes,
      resolvers: [new Mistakes()],
      resources: [kennel.serve(kennels)],
    };
  },
};

export const needyModule: Module = {
  tag: { name: 'Needy', description: 'Needs a module that is not listed.' },
  open: ({ serviceOf }) => ({ service: serviceOf(toysModule) }),
};
