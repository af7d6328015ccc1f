import type { FieldCost } from '@animal-store/graphql-limits/cost';
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
import { type TObject, Type } from 'typebox';
import type { Call } from '../../call.ts';
import { reportFault } from '../../errors.ts';
import type { Followed } from '../../records/live-items.ts';
import { type Int64, int64FromText } from '../../validation/int64.ts';
import { membersOf } from '../../validation/list-query.ts';
import { int64Schema } from '../../validation/schemas.ts';
import { validator } from '../../validation/validator.ts';
import type { GraphQLContext } from '../graphql/context.ts';
import {
  argumentsOf,
  argumentsType,
  inputTypeOf,
  objectTypeOf,
} from '../graphql/members.ts';
import {
  connectionOf,
  connectionValidator,
  ID,
  Idempotent,
  Live,
  toConnection,
} from '../graphql/types.ts';
import { orNotFound } from '../rest/responses.ts';
import {
  type Definition,
  type ItemOperation,
  itemOperationsOf,
  type Relation,
  type ResourceServices,
} from './definition.ts';
import { createEach } from './several.ts';

type ResolverClass<Services = ResourceServices> = new (
  services: Services,
) => object;
/** An item, with the ids of others. */
type Related = { readonly id: Int64 } & Record<
  string,
  Int64 | null | undefined
>;

/** The GraphQL type of a resource, and the classes of its resolvers. */
export function graphQLOf(definition: Definition) {
  const { operations, relations = {}, schemas } = definition;
  assertRelations(definition);
  const queryOf = inputReader(schemas.query);
  const fields = rootFields(definition, queryOf);
  return {
    type: objectTypeOf(schemas.item) as ClassType,
    resolvers: [
      ...operations.flatMap((name) => fields[name] ?? []),
      ...itemOperationsOf(definition).map((one) => itemField(definition, one)),
      ...Object.entries(relations).flatMap(([name, relation]) =>
        relationFields(definition, queryOf, name, relation),
      ),
    ],
  };
}

function assertRelations({ names, relations = {}, ...lists }: Definition) {
  const { filters } = membersOf(lists);
  const { combinations = filters.map((member) => [member]) } = lists;
  for (const { by, list, across } of Object.values(relations)) {
    if (across && !relations[across.relation])
      reportFault(`${names.type} has no relation ${across.relation}.`);
    const field = list ?? across?.list;
    const isListed = combinations.some((members) => `${members}` === by);
    if (field && !isListed)
      reportFault(
        `${field} lists ${names.many} by ${by} alone: declare ['${by}'] among the filters, and the combinations if any.`,
      );
  }
}

/** The service checks the type of what it reads. */
type InputReader = (given: unknown) => never;

function inputReader(schema: TObject) {
  return validator(schema, { isLenient: true }) as InputReader;
}

/** What a live list of changes takes. */
const followed = Type.Object({
  after: Type.Optional(
    int64Schema({
      description:
        'The position of a change: those after it. `Last-Event-ID` takes its place.',
    }),
  ),
});
const readFollowed = inputReader(followed) as (given: object) => Followed;

/** The subscriptions to changes and removals. */
function liveFields({ one, nouns }: Definition['names'], type: ClassType) {
  const after = argumentsType(followed);
  const fieldOf = (word: 'Changed' | 'Removed', returned: () => ClassType) => {
    const only = word.toLowerCase();
    return resolver(
      one + word,
      Live(returned, {
        description: `Those of the ${nouns} that are ${only}.`,
      }),
      [Args(() => after)],
      ({ service }, call, given: object) =>
        service.followAll?.({ ...readFollowed(given), only }, call),
    );
  };
  return [
    fieldOf('Changed', () => type),
    fieldOf('Removed', () => ID as never),
  ];
}

/** The fields of `Query`, `Mutation` and `Subscription`, by operation. */
function rootFields(
  { names, schemas, follow: followsAll }: Definition,
  queryOf: InputReader,
): Record<string, ResolverClass[]> {
  const { many, nouns } = names;
  const type = objectTypeOf(schemas.item);
  const args = argumentsOf(schemas.query);
  const Connection = connectionOf(type, names.type, nouns);
  const queryOfConnection = connectionValidator(schemas.query);
  const Input = inputTypeOf(schemas.input);
  const inputOf = inputReader(schemas.input);
  const list = resolver(
    many,
    Query(() => [type], { description: `Lists ${nouns}.` }),
    [Args(() => args.list)],
    async ({ service }, call, given) => {
      const { items } = await service.list(queryOf(given), call);
      return items;
    },
  );
  const connection = resolver(
    `${many}Connection`,
    Query(() => Connection, {
      description: 'The same list as a Relay connection.',
    }),
    [Args(() => args.connection)],
    async ({ service }, call, given) => {
      const query = queryOfConnection(given) as never;
      const page = await service.list(query, call);
      return toConnection(page, () => service.count(query, call));
    },
  );
  const create = resolver(
    `create${names.type}`,
    [
      Mutation(() => type, { description: `Adds one to the ${nouns}.` }),
      Idempotent(),
    ],
    [Arg('input', () => Input)],
    ({ service }, call, given) => service.create(inputOf(given), call),
  );
  const severalOf = inputReader(schemas.several);
  const createMany = resolver(
    `create${names.types}`,
    [
      Mutation(() => [type], {
        description: `Adds several to the ${nouns}: null for each that is refused, with its error.`,
        nullable: 'items',
        complexity: costOfSeveral,
      }),
      Idempotent(),
    ],
    [Arg('inputs', () => [Input])],
    ({ service }, call, given) => {
      const { inputs } = severalOf({ inputs: given });
      return createEach(service, inputs, call);
    },
  );
  const follow = resolver(
    `${names.one}Added`,
    Live(() => type, {
      description: `The ${nouns} as they are added, by ascending id.`,
    }),
    [Args(() => args.live)],
    ({ live }, call, given) => live?.subscribe(queryOf(given), call),
  );
  return {
    list: [list, connection],
    create: [create],
    createMany: [createMany],
    follow: [follow, ...(followsAll ? liveFields(names, type) : [])],
  };
}

/** Each input costs as much as an item of a list. */
function costOfSeveral({ args, childComplexity }: Parameters<FieldCost>[0]) {
  const inputs = [args.inputs ?? []].flat();
  return 1 + inputs.length * (1 + childComplexity);
}

function itemField(
  { names, schemas }: Definition,
  { verb, description, method, input, run }: ItemOperation,
) {
  const type = objectTypeOf(schemas.item);
  const isRemoval = method === 'DELETE';
  const isRead = method === 'GET';
  const Returned = isRemoval ? Boolean : type;
  const parameters = [Arg('id', () => ID)];
  if (isRemoval) parameters.push(Arg('version', () => Int, { nullable: true }));
  else if (input) {
    const Input = inputTypeOf(input);
    parameters.push(Arg(verb, () => Input));
  }
  const inputOf = input && inputReader(input);
  return resolver(
    isRead ? names.one : verb + names.type,
    isRead
      ? Query(() => type, { nullable: true, description })
      : Mutation(() => Returned, { description }),
    parameters,
    async ({ service }, call, id: string, given: unknown) => {
      const value = inputOf?.(isRemoval ? { version: given } : given);
      const found = await run(service, int64FromText(id), call, value as never);
      return isRead ? found : orNotFound(found, names.noun, id);
    },
  );
}

function relationFields(
  { names, relations = {}, schemas }: Definition,
  queryOf: InputReader,
  name: string,
  { by, to, list, across }: Relation,
) {
  const type = objectTypeOf(schemas.item);
  const ofRelation = [by, `${by}_in`, `${by}_is_null`];
  const args = argumentsOf(Type.Omit(schemas.query, ofRelation));
  const itemsOf = async (
    { service }: ResourceServices,
    call: Call,
    { id }: Related,
    given: object,
  ) => {
    const query = { ...(queryOf(given) as object), [by]: id };
    const { items } = await service.list(query as never, call);
    return items as readonly Related[];
  };
  const fields = [
    // `Book.author`
    resolver(
      name,
      FieldResolver(to, { nullable: true, description: `Its ${name}.` }),
      [Root()],
      ({ related }, call, item: Related) =>
        related[name]?.find(item[by] ?? undefined, call),
      () => type,
    ),
  ];
  // `Author.books`
  if (list)
    fields.push(
      resolver(
        list,
        FieldResolver(() => [type], { description: `Its ${names.nouns}.` }),
        [Root(), Args(() => args.nested)],
        itemsOf,
        to,
      ),
    );
  // `Book.tags`
  const far = across && relations[across.relation];
  if (far) {
    const pageOnly = argumentsOf(Type.Pick(schemas.query, ['limit']));
    const description = `Its ${across.list}, in the order of the ${names.nouns}.`;
    fields.push(
      resolver(
        across.list,
        FieldResolver(() => [far.to()], { description }),
        [Root(), Args(() => pageOnly.nested)],
        async (services, call, row: Related, given: object) => {
          const links = await itemsOf(services, call, row, given);
          const service = services.related[across.relation];
          const found = links.map((link) =>
            service?.find(link[far.by] ?? undefined, call),
          );
          return (await Promise.all(found)).filter(Boolean);
        },
        to,
      ),
    );
  }
  return fields;
}

/**
 * A resolver of one field.
 *
 * @param parameters what `run` gets after the call
 * @param ofType the type that has the field, which is none of the roots
 */
export function resolver<
  Services = ResourceServices,
  Given extends never[] = never[],
>(
  name: string,
  decorators: MethodDecorator | MethodDecorator[],
  parameters: Array<ReturnType<typeof Ctx>>,
  run: (services: Services, call: Call, ...given: Given) => unknown,
  ofType?: () => ClassType,
): ResolverClass<Services> {
  class Field {
    constructor(private readonly services: Services) {}

    async [name]({ call }: GraphQLContext, ...given: Given) {
      return run(this.services, call, ...given);
    }
  }
  for (const [at, parameter] of [Ctx(), ...parameters].entries())
    parameter(Field.prototype, name, at);
  for (const decorate of [decorators].flat())
    decorate(Field.prototype, name, {});
  (ofType ? Resolver(ofType) : Resolver())(Field);
  return Field;
}
