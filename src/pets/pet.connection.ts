import { ArgsType, Field, Int, ObjectType } from 'type-graphql';
import { type Pet, PetStatus } from './pet.entity.ts';
import { pageLimit } from './pet.rules.ts';
import type { PetPage } from './pet.service.ts';
import { PetType } from './pet.types.ts';

/** The list of animals as a Relay connection (GraphQL Cursor Connections Specification), for frontends that expect one. */

@ObjectType({ description: 'Where a page of a connection lies.', simpleResolvers: true })
export class PageInfo {
  @Field(() => Boolean, { description: 'There are animals after this page.' })
  readonly hasNextPage!: boolean;

  @Field(() => Boolean, { description: 'Always false: a connection is walked forwards.' })
  readonly hasPreviousPage!: boolean;

  @Field(() => String, { nullable: true, description: 'The cursor of the first animal here.' })
  readonly startCursor!: string | null;

  @Field(() => String, {
    nullable: true,
    description: 'The cursor of the last animal here; `after` continues from it.',
  })
  readonly endCursor!: string | null;
}

@ObjectType({ description: 'An animal and its place in the list.', simpleResolvers: true })
export class PetEdge {
  @Field(() => String, { description: 'Opaque; `after` continues from it.' })
  readonly cursor!: string;

  @Field(() => PetType, { description: 'The animal.' })
  readonly node!: Pet;
}

@ObjectType({ description: 'A page of the list of animals.', simpleResolvers: true })
export class PetConnection {
  @Field(() => [PetEdge], { description: 'The animals, ascending by id.' })
  readonly edges!: PetEdge[];

  @Field(() => PageInfo, { description: 'Where this page lies.' })
  readonly pageInfo!: PageInfo;
}

@ArgsType()
export class PetsConnectionArgs {
  @Field(() => Int, {
    nullable: true,
    defaultValue: pageLimit.default,
    description: `How many animals at most, ${pageLimit.min} to ${pageLimit.max}.`,
  })
  readonly first?: number | null;

  @Field(() => String, { nullable: true, description: 'Only animals after this cursor.' })
  readonly after?: string | null;

  @Field(() => PetStatus, { nullable: true, description: 'Only animals with this status.' })
  readonly status?: PetStatus | null;
}

/** A cursor is the animal's id: the same place that `after` names on the other lists. */
export function toConnection({ pets, hasNext }: PetPage): PetConnection {
  const edges = pets.map((node) => ({ cursor: `${node.id}`, node }));
  const [startCursor, endCursor] = [edges.at(0)?.cursor ?? null, edges.at(-1)?.cursor ?? null];
  return { edges, pageInfo: { hasNextPage: hasNext, hasPreviousPage: false, startCursor, endCursor } };
}
