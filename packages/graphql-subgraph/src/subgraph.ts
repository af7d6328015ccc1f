import {
  GraphQLError,
  type GraphQLFieldResolver,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLResolveInfo,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
  isObjectType,
  Kind,
  printSchema,
  type ValueNode,
  valueFromASTUntyped,
} from 'graphql';

export interface SubgraphOptions<Context extends object> {
  /** The types to which other subgraphs may refer by `id`: each finds an item, or null, by the text of its id. */
  references: Record<string, (id: string, context: Context) => Promise<object | null>>;
  /** The types that every subgraph may define alike. */
  shareable: readonly string[];
  /** Whether clients may read the schema; its SDL is part of it. */
  introspection: boolean;
  /** Maximum number of representations of a field, and of look-ups of a request at a time. */
  maxRepresentations: number;
  /** Runs the look-ups of a field, for example to charge them. */
  run: (
    call: { root: unknown; args: Record<string, unknown>; context: Context; info: GraphQLResolveInfo },
    work: () => Promise<unknown>,
  ) => Promise<unknown>;
  /** Creates the error about one representation, or about too many. */
  refuse: (message: string) => Error;
}

type Representation = Record<string, unknown> & { __typename: string };

/**
 * Adds what makes a schema a subgraph (Apollo Federation subgraph specification, version 2.0): `_service` with its SDL,
 * and `_entities`, which finds the items to which other subgraphs refer by `id`.
 *
 * @throws Error for a type that does not exist
 */
export function subgraph<Context extends object>(
  schema: GraphQLSchema,
  options: SubgraphOptions<Context>,
): GraphQLSchema {
  const { query, types, ...others } = schema.toConfig();
  if (!query) throw new Error('A subgraph needs queries.');
  const names = Object.keys(options.references);
  const entities = names.map((name) => {
    const type = schema.getType(name);
    if (isObjectType(type) && type.getFields().id) return type;
    throw new Error(`References name ${name}, and there is no GraphQL type of this name with an id.`);
  });
  const sdl = sdlOf(schema, names, options.shareable);
  const Service = new GraphQLObjectType({
    name: '_Service',
    fields: { sdl: { type: new GraphQLNonNull(GraphQLString) } },
  });
  const Entity = new GraphQLUnionType({
    name: '_Entity',
    types: entities,
    resolveType: ({ __typename }) => __typename,
  });
  const { fields, ...root } = query.toConfig();
  const Query = new GraphQLObjectType<unknown, Context>({
    ...root,
    fields: {
      ...fields,
      ...(options.introspection && { _service: { type: new GraphQLNonNull(Service), resolve: () => ({ sdl }) } }),
      ...(entities.length > 0 && {
        _entities: {
          type: nonNullList(Entity),
          args: { representations: { type: nonNullList(new GraphQLNonNull(Any)) } },
          extensions: { complexity: entitiesCost(options) },
          resolve: entitiesResolver(options),
        },
      }),
    },
  });
  return new GraphQLSchema({ ...others, query: Query, types: types.filter((type) => type !== query) });
}

function nonNullList<Type extends GraphQLUnionType | GraphQLNonNull<GraphQLScalarType>>(type: Type) {
  return new GraphQLNonNull(new GraphQLList(type));
}

/** In messages, because aliases repeat a name that is as long as a body. */
const longestName = 100;

function entitiesResolver<Context extends object>({
  references,
  run,
  refuse,
}: SubgraphOptions<Context>): GraphQLFieldResolver<unknown, Context> {
  /** @returns an error for one representation, so that the others are answered */
  async function entityOf({ __typename: name, id }: Representation, context: Context): Promise<object | null> {
    try {
      const find = Object.hasOwn(references, name) ? references[name] : undefined;
      if (!find) throw refuse(`No entity is named ${name.slice(0, longestName)}.`);
      if (!isId(id)) throw refuse('A representation needs `id`: a string, or an integer.');
      const found = await find(`${id}`, context);
      return found && Object.create(found, { __typename: { value: name } });
    } catch (error) {
      return error as Error;
    }
  }

  /** Looks each item up once. */
  function findAll(representations: Representation[], context: Context): Promise<unknown[]> {
    const found = new Map<string, Promise<object | null>>();
    const places = representations.map((one) => {
      const key = JSON.stringify([one.__typename, isId(one.id) ? `${one.id}` : null]);
      const entity = found.get(key) ?? entityOf(one, context);
      found.set(key, entity);
      return entity;
    });
    return Promise.all(places);
  }

  /** The look-ups of each request, of which one is in progress. */
  const lookups = new WeakMap<Context, Promise<unknown>>();
  return (root, args, context, info) =>
    run({ root, args, context, info }, () => {
      // A page at a time, also of several fields, because other requests wait in the same queue.
      const find = () => findAll(args.representations, context);
      const found = lookups.get(context)?.then(find) ?? find();
      lookups.set(context, found);
      return found;
    });
}

const isId = (id: unknown) => typeof id === 'string' || typeof id === 'bigint' || Number.isSafeInteger(id);

/** One, plus one and the cost of its fields for every representation. It throws for too many, before execution. */
function entitiesCost({ maxRepresentations, refuse }: Pick<SubgraphOptions<never>, 'maxRepresentations' | 'refuse'>) {
  return ({ args, childComplexity }: { args: Record<string, unknown>; childComplexity: number }): number => {
    const { representations } = args;
    const count = Array.isArray(representations) ? representations.length : 1;
    if (count <= maxRepresentations) return 1 + count * (1 + childComplexity);
    throw refuse(`_entities takes at most ${maxRepresentations} representations at a time: ${count}.`);
  };
}

const Any = new GraphQLScalarType<Representation, unknown>({
  name: '_Any',
  parseValue: representationOf,
  parseLiteral: (node, variables) => {
    if (node.kind !== Kind.OBJECT) return representationOf(undefined);
    return representationOf(
      Object.fromEntries(node.fields.map(({ name, value }) => [name.value, exactly(value, variables)])),
    );
  },
});

/** The digits of an integer. As a JavaScript number it would lose some. */
function exactly(node: ValueNode, variables: Parameters<typeof valueFromASTUntyped>[1]): unknown {
  return node.kind === Kind.INT ? node.value : valueFromASTUntyped(node, variables);
}

function representationOf(value: unknown): Representation {
  if (typeof (value as Partial<Representation> | null | undefined)?.__typename === 'string') {
    return value as Representation;
  }
  throw new GraphQLError('A representation must be an object with `__typename` and the fields of the key.');
}

/** The schema with federation's directives. */
function sdlOf(schema: GraphQLSchema, entities: readonly string[], shareable: readonly string[]): string {
  const link = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])';
  const types = printSchema(schema).replace(/^type (\w+)(?: implements .+)?(?= \{$)/gm, (type, name: string) => {
    if (entities.includes(name)) return `${type} @key(fields: "id")`;
    return shareable.includes(name) ? `${type} @shareable` : type;
  });
  return `${link}\n\n${types}\n`;
}
