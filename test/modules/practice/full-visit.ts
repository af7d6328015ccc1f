import { Arg, Ctx, Mutation, Resolver } from 'type-graphql';
import { type Static, Type } from 'typebox';
import type { GraphQLContext } from '../../../src/api/graphql/context.ts';
import { inputTypeOf } from '../../../src/api/graphql/members.ts';
import { Idempotent } from '../../../src/api/graphql/types.ts';
import type { Routes } from '../../../src/api/http/routes.ts';
import { success } from '../../../src/api/rest/documented-responses.ts';
import type { Call } from '../../../src/call.ts';
import type { Database } from '../../../src/database/database.ts';
import type { Repository } from '../../../src/records/repository.ts';
import { type Input, validator } from '../../../src/validation/validator.ts';
import {
  type NewTreatment,
  type Treatment,
  TreatmentEntity,
  treatment,
} from './treatment.ts';
import { type NewVisit, type Visit, VisitEntity, visit } from './visit.ts';

const { visitId: _, ...ofTreatment } = treatment.schemas.input.properties;
const newFullVisitSchema = Type.Object(
  {
    ...visit.schemas.input.properties,
    treatments: Type.Array(
      Type.Object(ofTreatment, { $id: 'TreatmentOfNewVisit' }),
      { minItems: 1, maxItems: 20, description: 'What the vet does in it.' },
    ),
  },
  { $id: 'NewFullVisit', description: 'A visit with its treatments.' },
);
type NewFullVisit = Input<typeof newFullVisitSchema>;
const fullVisitSchema = Type.Object(
  {
    ...visit.schemas.item.properties,
    treatments: Type.Array(treatment.schemas.item),
  },
  { $id: 'FullVisit', description: 'A visit with its treatments.' },
);
const newFullVisitOf = validator(newFullVisitSchema, { isLenient: true });

export class FullVisits {
  constructor(
    private readonly database: Database,
    private readonly visits: Repository<Visit, NewVisit>,
    private readonly treatments: Repository<Treatment, NewTreatment>,
  ) {}

  /** Adds a visit with its treatments, all or none. */
  create(input: NewFullVisit, call: Call) {
    const creates = [VisitEntity, TreatmentEntity];
    return this.database.transaction(call, { creates, input }, async () => {
      const { treatments: given, ...ofVisit } = input;
      const visit = await this.visits.create(ofVisit as NewVisit, call);
      const treatments: Treatment[] = [];
      for (const one of given) {
        const own = { ...one, visitId: visit.id } as NewTreatment;
        treatments.push(await this.treatments.create(own, call));
      }
      return { ...visit, treatments };
    });
  }
}

export function fullVisitRoutes(app: Routes, visits: FullVisits): void {
  const schema = {
    operationId: 'createFullVisit',
    summary: 'Add a visit with its treatments',
    body: newFullVisitSchema,
    response: { 201: success(fullVisitSchema, 'They are added.') },
  };
  app.post(
    '/full-visits',
    { schema, config: { isIdempotent: true } },
    async ({ body, call }, reply) =>
      reply.code(201).send(await visits.create(body, call)),
  );
}

const NewFullVisitInput = inputTypeOf(newFullVisitSchema);

@Resolver()
export class FullVisitResolver {
  constructor(private readonly visits: FullVisits) {}

  @Idempotent()
  @Mutation(() => visit.type, { description: 'Adds a visit with treatments.' })
  createFullVisit(
    @Arg('input', () => NewFullVisitInput) input: object,
    @Ctx() { call }: GraphQLContext,
  ): Promise<Static<typeof fullVisitSchema>> {
    return this.visits.create(newFullVisitOf(input), call);
  }
}
