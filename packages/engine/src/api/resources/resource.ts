import {
  type Static,
  type TObject,
  type TProperties,
  type TSchema,
  Type,
} from 'typebox';
import { reportFault } from '../../errors.ts';
import {
  columnsOf,
  columnsThrough,
  type Through,
} from '../../records/columns.ts';
import { LiveList } from '../../records/live-list.ts';
import type { CollectionOptions } from '../../records/repository.ts';
import {
  hiddenBy,
  modulesOf,
  type Owned,
  Ownership,
} from '../../records/rows/ownership.ts';
import {
  type Stamp,
  type Stamped,
  type StampsOf,
  stampsOf,
} from '../../records/stamps.ts';
import type { TraceOption } from '../../records/trace.ts';
import { type Int64, shownInJson } from '../../validation/int64.ts';
import { type Lists, listQuery } from '../../validation/list-query.ts';
import type { MemberSchema } from '../../validation/rules.ts';
import {
  changeSchema,
  int64Schema,
  itemSchema,
  mapMembers,
  memberOf,
  nullable,
  textSchema,
  versionSchema,
} from '../../validation/schemas.ts';
import { type Input, validator } from '../../validation/validator.ts';
import type { Audiences, References } from '../graphql/scopes.ts';
import type { Routes } from '../http/routes.ts';
import type { Collection } from './collection.ts';
import {
  type Definition,
  namesFor,
  type OperationName,
  type Relation,
  type ResourceService,
  type ResourceServices,
  type Transition,
} from './definition.ts';
import { graphQLOf } from './resolvers.ts';
import { addRoutes } from './routes.ts';
import { severalOf } from './several.ts';

/** A resource with ordinary operations, in REST and GraphQL. */
interface Declaration<
  Members extends TProperties,
  Computed extends TProperties,
  OwnerName extends string,
  Times extends boolean = boolean,
  Actor extends boolean = boolean,
  ThroughName extends string = string,
> extends Lists<(keyof Members & string) | Stamp | NoInfer<ThroughName>>,
    Owned<OwnerName>,
    Stamped<Times, Actor> {
  /** Its type: `Visit`. `NewVisit`, `visits` and `listVisits` follow. */
  name: string;
  /** What one is. */
  description: string;
  /** Below `/v1`, in the plural: `/visits`. */
  path: `/${string}`;
  operations: readonly OperationName[];
  /** What clients set. */
  members: Members;
  /**
   * Those of `members` that a change cannot set.
   *
   * @default []
   */
  fixed?: Array<keyof Members>;
  /** What clients may say of a new one, as JSON. */
  example?: object;
  /**
   * What follows from other members, in both APIs.
   *
   * @example { day: { schema: Type.Integer(), of: ({ at }) => at.getUTCDay() } }
   */
  computed?: {
    [Name in keyof Computed]: ComputedMember<Members, Computed[Name]>;
  };
  /** Follows changes and removals, too: `follow` with a trace. */
  follow?: 'all';
  /**
   * Further filters and orders: members of what its relations refer to.
   *
   * @example { owner_name: { by: 'ownerId', member: 'name', schema } }
   */
  through?: { readonly [Name in ThroughName]: Through };
  /** Stores who changes what, as in `Records`. */
  trace?: TraceOption<keyof Members & string>;
  /**
   * Other resources, by the fields of its GraphQL type.
   *
   * @example { author: { by: 'authorId', to: () => AuthorType, list: 'books' } }
   */
  relations?: Record<string, Relation>;
  /**
   * Operations on one item without an input.
   *
   * @example { cancel: { description: '...', change: () => ({ state }) } }
   */
  transitions?: Record<
    string,
    Transition<Stored<Members>, Partial<Stored<Members>>>
  >;
}

interface ComputedMember<Members extends TProperties, Schema extends TSchema> {
  schema: Schema;
  of(item: Stored<Members>): Static<Schema>;
}
type Stored<Members extends TProperties> = {
  readonly id: Int64;
  readonly version: number;
} & { readonly [Name in keyof Members]: Static<Members[Name]> };
type ItemWith<
  Members extends TProperties,
  Computed extends TProperties,
  OwnerName extends string,
> = Stored<Members & OwnersOf<Members, OwnerName>> & {
  readonly [Name in keyof Computed]: Static<Computed[Name]>;
};
/** The members that rows are chosen by, unless clients set them. */
type OwnersOf<Members, OwnerName extends string> = Record<
  Exclude<OwnerName, keyof Members>,
  typeof ownerSchema
>;
/** The item of a resource. */
export type ItemOf<Resource extends { types: { item: unknown } }> =
  Resource['types']['item'];
/** The input of a new one. */
export type NewOf<Resource extends { types: { input: unknown } }> =
  Resource['types']['input'];

/** What a module serves, or a resource of it. */
export interface Served {
  /** The REST routes, under `/v1`. */
  routes(app: Routes): void;
  /** Instances of classes with type-graphql decorators. */
  resolvers: object[];
  /** The types to which other subgraphs may refer (`@key(fields: "id")`). */
  references: References;
  /** Modules whose scopes open its types, too. */
  audiences: Audiences;
  /** What an operator may seed, export and import. */
  collections: Collection[];
}

type Services = Partial<Pick<ResourceServices, 'related'>> &
  Pick<Collection, 'sample'>;

/**
 * Declares a resource, once for the process. `columns` goes to its entity,
 * `lists` to its `Records`, and what `serve` returns to `resources` of its
 * module.
 *
 * @example
 *   resource({
 *     name: 'Tag',
 *     description: 'A word that marks books.',
 *     path: '/tags',
 *     operations: ['list', 'find', 'create', 'change', 'remove'],
 *     members: { name: textSchema({ description: 'The word.' }) },
 *   });
 */
export function resource<
  const Members extends TProperties,
  Computed extends TProperties = Record<never, never>,
  const OwnerName extends string = never,
  Times extends boolean = false,
  Actor extends boolean = false,
  ThroughName extends string = never,
>(
  declaration: Declaration<
    Members,
    Computed,
    OwnerName,
    Times,
    Actor,
    ThroughName
  >,
) {
  type Item = ItemWith<Members, Computed, Exclude<OwnerName, ThroughName>> &
    StampsOf<Stamped<Times, Actor>>;
  type New = Input<TObject<Members>>;
  const { name, path, operations, computed } = declaration;
  assertDeclared(declaration);
  const names = namesFor(name, path);
  const owned = new Ownership(declaration, undefined);
  const schemas = schemasOf(declaration, names, owned);
  const audiences = modulesOf(declaration.audiences);
  const definition: Definition = { ...declaration, names, schemas, audiences };
  const { type, resolvers } = graphQLOf(definition);
  return {
    columns: {
      ...columnsOf(schemas.stored, owned.tenant),
      ...columnsThrough(declaration.through),
    },
    /** Options of its `Records`, which take their types from it. */
    lists: {
      ...declaration,
      computed: mapMembers(computed, ({ of }) => of),
    } as CollectionOptions<Item, New>,
    /** Its GraphQL type. */
    type,
    schemas,
    types: {} as { item: Item; input: New },
    serve(service: ResourceService, services: Services = {}): Served {
      const { sample, related = {} } = services;
      const isLive = operations.includes('follow');
      const live = isLive ? new LiveList(service) : undefined;
      const all: ResourceServices = { service, live, related };
      const { item, input, query } = schemas;
      return {
        routes: (app) => addRoutes(app, definition, all),
        resolvers: resolvers.map((Resolver) =>
          Object.assign(new Resolver(all), { audiences }),
        ),
        audiences: { [name]: audiences },
        references: { [name]: (id, call) => service.find(id, call) },
        collections: [
          {
            name: path.slice(1),
            isFollowed: isLive,
            ...{ input, item, query, service, sample },
          },
        ],
      };
    },
  };
}

/** Names what would start, and be served by halves. */
function assertDeclared(
  declaration: Declaration<TProperties, TProperties, string>,
) {
  const {
    name,
    operations,
    members,
    follow,
    trace,
    through = {},
    computed = {},
  } = declaration;
  const ofService = { id, version: versionSchema, ...stampsOf(declaration) };
  if (!/^[A-Z]\w*$/.test(name))
    reportFault(
      `The name of a resource is a word like Toy: ${JSON.stringify(name)}.`,
    );
  const { one, many } = namesFor(name, declaration.path);
  if (one === many)
    reportFault(`The path of ${name} must name several, not ${many}.`);
  if (operations.includes('follow') && !operations.includes('list'))
    reportFault(`${name} has follow, which needs list.`);
  const isFollowed = operations.includes('follow') && trace;
  if (follow && !isFollowed)
    reportFault(`${name} has follow: 'all', which needs follow and a trace.`);
  const owners = ownersOf(declaration);
  const all = [members, computed, owners].flatMap((one) => Object.keys(one));
  const deeds = ['remove', ...Object.keys(declaration.transitions ?? {})];
  for (const { scope, does = [] } of declaration.audiences ?? [])
    for (const deed of does)
      if (!deeds.includes(deed))
        reportFault(`The audience ${scope} of ${name} cannot ${deed} it.`);
  if (follow && declaration.filters?.includes('follow'))
    reportFault(`follow has two meanings in the list of ${many}.`);
  for (const member of Object.keys(through))
    if (all.includes(member) || member in ofService)
      reportFault(`${member} of ${name} is a member already.`);
  for (const [at, member] of all.entries())
    if (member in ofService || all.indexOf(member) < at)
      reportFault(
        `${member} cannot be a member of ${name}: each item or object has one.`,
      );
}

function schemasOf<Members extends TProperties, OwnerName extends string>(
  declaration: Declaration<Members, TProperties, OwnerName>,
  names: Definition['names'],
  { kept }: Ownership,
) {
  const { noun } = names;
  const { name, description, members, computed, fixed = [] } = declaration;
  const example = declaration.example && asJson(declaration.example);
  const described = { $id: name, description };
  const owners = ownersOf(declaration);
  const ofOwners = mapMembers(owners, () => ownerSchema);
  const added: object = { ...ofOwners, ...stampsOf(declaration) };
  const all = { id, ...members, ...added, version: versionSchema };
  const stored = itemSchema(
    all as typeof all & OwnersOf<Members, OwnerName>,
    described,
  );
  const further = mapMembers<Through, TSchema>(
    declaration.through,
    ({ schema }) => Type.Optional(nullable(schema)),
  );
  const listed = itemSchema({ ...all, ...further }, described);
  const ofItem = {
    ...stored.properties,
    ...mapMembers(computed, ({ schema }) => schema),
  };
  const hidden = hiddenBy(declaration.audiences);
  const shown = mapMembers<TSchema, TSchema>(ofItem, (schema, member) =>
    hidden.includes(member) ? Type.Optional(orNull(schema)) : schema,
  );
  const input = Type.Object(members, {
    $id: `New${name}`,
    description: `What clients say of a new ${noun}.`,
    ...(example && { examples: [example] }),
  });
  const examples = example && [exampleOf(declaration, stored, input)];
  const changed = Type.Omit(input, [...fixed, ...kept] as string[]) as TObject;
  return {
    stored,
    input,
    several: severalOf(input, names.types),
    item: Type.Object(shown, { ...described, ...(examples && { examples }) }),
    change: changeSchema(changed.properties, {
      $id: `${name}Change`,
      description: 'What to change: null clears, absent members stay.',
    }),
    query: listQuery(noun, listed, declaration as Lists<never>),
  };
}

/** The members that rows are chosen by and no client sets, as in an example. */
function ownersOf(declaration: Declaration<TProperties, TProperties, string>) {
  const { members } = new Ownership(declaration, undefined);
  const others = { ...declaration.members, ...declaration.through };
  const own = members.filter((member) => !(member in others));
  return Object.fromEntries(own.map((member) => [member, 'key:1']));
}

/**
 * The item that the example becomes.
 *
 * @throws Error for a wrong one
 */
function exampleOf(
  declaration: Declaration<TProperties, TProperties, string>,
  stored: TObject,
  input: TObject,
): object {
  const { name, example, computed } = declaration;
  const item = mapMembers<unknown, unknown>(stored.properties, () => null);
  try {
    Object.assign(item, validator(input)(example), { id: 1, version: 1 });
  } catch (cause) {
    const { message } = cause as Error;
    throw new Error(`The example of ${name} is wrong: ${message}`, { cause });
  }
  const ofStamps = mapMembers(stampsOf(declaration), exampleIn);
  Object.assign(item, ownersOf(declaration), ofStamps);
  const follows = mapMembers(computed, ({ of }) => of(item as never));
  return asJson({ ...item, ...follows });
}

const exampleIn = ({ examples = [] }: MemberSchema) => examples[0];

const asJson = (value: object): object =>
  JSON.parse(JSON.stringify(value, shownInJson));

/** As a member is that some do not see. */
const orNull = (schema: TSchema) =>
  memberOf(schema).isNullable ? schema : nullable(schema);

const id = int64Schema({ description: 'Its identifier.' });
const ownerSchema = textSchema({ description: 'To whom it belongs.' });
