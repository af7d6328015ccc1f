import {
  Arg,
  Args,
  type ClassType,
  Ctx,
  FieldResolver,
  Int,
  Mutation,
  Query,
  Resolver,
  Root,
} from 'type-graphql';
import { Type } from 'typebox';
import type { Call } from '../../call.ts';
import { type Int64, int64FromText } from '../../validation/int64.ts';
import { validator } from '../../validation/validator.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import { argumentsOf, inputTypeOf, objectTypeOf } from '../graphql/members.ts';
import {
  connectionOf,
  connectionValidator,
  ID,
  Idempotent,
  Live,
  NestedListArgs,
  toConnection,
} from '../graphql/types.ts';
import { orNotFound } from '../rest/responses.ts';
import {
  type OnOne,
  operationsOnOne,
  type Parts,
  type Relation,
  type Serving,
} from './parts.ts';

type ResolverClass = new (serving: Serving) => object;
/** An item, with the ids of others. */
type Row = { readonly id: Int64 } & Record<string, Int64 | null | undefined>;

/** The GraphQL type of a resource, and the classes of its resolvers. */
export function graphQLOf(parts: Parts) {
  const { operations, relations, schemas } = parts;
  const type = objectTypeOf(schemas.item) as ClassType;
  const byOperation: Record<string, MakeResolvers> = { list, create, follow };
  return {
    type,
    resolvers: [
      ...operations.flatMap((name) => byOperation[name]?.(type, parts) ?? []),
      ...operationsOnOne(parts).map((one) => onOne(type, parts, one)),
      ...Object.entries(relations).flatMap(([field, relation]) =>
        fieldsOf(type, parts, field, relation),
      ),
    ],
  };
}

type MakeResolvers = (type: ClassType, parts: Parts) => ResolverClass[];

const list: MakeResolvers = (
  type,
  { names: { many, nouns, type: name }, schemas },
) => {
  const args = argumentsOf(schemas.query);
  const Connection = connectionOf(type, name, nouns);
  const queryOf = validator(schemas.query, { isLenient: true });
  const queryOfConnection = connectionValidator(schemas.query);
  return [
    resolver(
      many,
      Query(() => [type], { description: `Lists ${nouns}.` }),
      [Args(() => args.list)],
      async ({ service }, call, given: object) =>
        (await service.list(queryOf(given) as never, call)).items,
    ),
    resolver(
      `${many}Connection`,
      Query(() => Connection, {
        description: 'The same list as a Relay connection.',
      }),
      [Args(() => args.connection)],
      async ({ service }, call, given: object) => {
        const query = queryOfConnection(given) as never;
        const page = await service.list(query, call);
        return toConnection(page, () => service.count(query, call));
      },
    ),
  ];
};

const create: MakeResolvers = (type, { names, schemas }) => {
  const Input = inputTypeOf(schemas.input);
  const inputOf = validator(schemas.input, { isLenient: true });
  const description = `Adds one to the ${names.nouns}.`;
  const mutation = Mutation(() => type, { description });
  return [
    resolver(
      `create${names.type}`,
      (...method) => {
        Idempotent()(...method);
        mutation(...method);
      },
      [Arg('input', () => Input)],
      ({ service }, call, given: object) =>
        service.create(inputOf(given) as never, call),
    ),
  ];
};

const follow: MakeResolvers = (type, { names, schemas }) => {
  const args = argumentsOf(schemas.query);
  const queryOf = validator(schemas.query, { isLenient: true });
  const description = `The ${names.nouns} as they are added, by ascending id.`;
  return [
    resolver(
      `${names.one}Added`,
      Live(() => type, { description }),
      [Args(() => args.live)],
      ({ live }, call, given: object) =>
        live?.subscribe(queryOf(given) as never, call),
    ),
  ];
};

function onOne(
  type: ClassType,
  { names }: Parts,
  { verb, description, method, input, run }: OnOne,
): ResolverClass {
  const isRemoval = method === 'DELETE';
  const isRead = method === 'GET';
  const name = isRead ? names.one : verb + names.type;
  const decorate = isRead
    ? Query(() => type, { nullable: true, description })
    : Mutation(() => (isRemoval ? Boolean : type), { description });
  const inputOf = input && validator(input, { isLenient: true });
  const parameters = [Arg('id', () => ID)];
  if (isRemoval) parameters.push(Arg('version', () => Int, { nullable: true }));
  else if (input) {
    const Input = inputTypeOf(input);
    parameters.push(Arg(verb, () => Input));
  }
  return resolver(
    name,
    decorate,
    parameters,
    async ({ service }, call, id: string, given: unknown) => {
      const value = inputOf?.(isRemoval ? { version: given } : given);
      const found = await run(service, int64FromText(id), call, value as never);
      return isRead ? found : orNotFound(found, names.noun, id);
    },
  );
}

function fieldsOf(
  type: ClassType,
  { names, relations, schemas }: Parts,
  field: string,
  { by, to, list, across }: Relation,
): ResolverClass[] {
  const others = Object.entries(schemas.query.properties).filter(
    ([name]) => ![by, `${by}_in`, `${by}_is_null`].includes(name),
  );
  const args = argumentsOf(Type.Object(Object.fromEntries(others)));
  const queryOf = validator(schemas.query, { isLenient: true });
  const ofTheirs = async ({ service }: Serving, call: Call, given: Given) => {
    const query = { ...queryOf(given.args), [by]: given.id };
    return (await service.list(query as never, call)).items;
  };
  const fields = [
    // `Visit.pet`
    resolver(
      field,
      FieldResolver(to, { nullable: true, description: `Its ${field}.` }),
      [Root()],
      ({ related }, call, item: Row) =>
        related[field]?.find(item[by] ?? undefined, call),
      () => type,
    ),
  ];
  // `Pet.visits`
  if (list)
    fields.push(
      resolver(
        list,
        FieldResolver(() => [type], { description: `Its ${names.nouns}.` }),
        [Root(), Args(() => args.nested)],
        (serving, call, { id }: Row, args: object) =>
          ofTheirs(serving, call, { id, args }),
        to,
      ),
    );
  // `Pet.tags`
  const far = across && relations[across.relation];
  if (far)
    fields.push(
      resolver(
        across.list,
        FieldResolver(() => [far.to()], {
          description: `Its ${across.list}, in the order of the ${names.nouns}.`,
        }),
        [Root(), Args(() => NestedListArgs)],
        async (serving, call, { id }: Row, args: object) => {
          const links = await ofTheirs(serving, call, { id, args });
          const service = serving.related[across.relation];
          const found = (links as readonly Row[]).map((link) =>
            service?.find(link[far.by] ?? undefined, call),
          );
          return (await Promise.all(found)).filter(Boolean);
        },
        to,
      ),
    );
  return fields;
}

interface Given {
  id: Int64;
  args: object;
}

/**
 * A resolver of one field.
 *
 * @param parameters what `run` gets after the call
 * @param ofType the type that has the field, which is none of the roots
 */
function resolver<Arguments extends never[]>(
  name: string,
  decorate: MethodDecorator,
  parameters: Array<ReturnType<typeof Ctx>>,
  run: (serving: Serving, call: Call, ...given: Arguments) => unknown,
  ofType?: () => ClassType,
): ResolverClass {
  class Field {
    constructor(private readonly serving: Serving) {}

    async [name]({ call }: GraphQLContext, ...given: Arguments) {
      return run(this.serving, call, ...given);
    }
  }
  for (const [at, parameter] of [Ctx(), ...parameters].entries())
    parameter(Field.prototype, name, at);
  decorate(Field.prototype, name, {});
  (ofType ? Resolver(ofType) : Resolver())(Field);
  return Field;
}
