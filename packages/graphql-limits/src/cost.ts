import {
  type DocumentNode,
  type FieldNode,
  type GraphQLArgument,
  GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isListType,
  isObjectType,
  type OperationDefinitionNode,
  print,
  type SelectionSetNode,
  valueFromASTUntyped,
} from 'graphql';
import { fieldsIn, fragmentsOf } from './limits.ts';

/** Of arguments or variables, by their names. */
export type Values = Record<string, unknown>;
type Field = Pick<
  GraphQLField<unknown, unknown>,
  'args' | 'type' | 'extensions'
>;

/**
 * Returns the maximum cost of a field for its arguments (type-graphql's
 * `complexity`, in the extensions of a field). `childComplexity` is the cost of
 * the fields selected on one item.
 */
export type FieldCost = (estimate: {
  args: Values;
  childComplexity: number;
}) => number;

/**
 * The most items of a page.
 *
 * @param asked the argument `limit`, `last` or `first`; undefined or null when
 *   it is not given
 * @param maximum in the extensions of the argument `limit` or `first`
 */
type MostFor = (asked: unknown, maximum?: number) => number;

/**
 * The number of leaf fields that an item has for nothing. Each further one
 * costs as much as the item.
 */
const freeLeaves = 10;

const complexityOf = ({ extensions }: Field) =>
  extensions.complexity as FieldCost | number | undefined;

const isList = ({ type }: Field) => isListType(getNullableType(type));

const pageSizeOf = ({ args }: Field) =>
  args.find(({ name }) => name === 'limit' || name === 'first');

/**
 * The cost of a field: its `complexity`, if it has one. Otherwise, with `limit`
 * or `first`: 1, plus 1 and the cost of its fields for each item, plus once the
 * cost of the fields beside a connection's lists. Otherwise 2 at the root, 1
 * with a resolver, 0 without. A value in a list of values costs 1. A list
 * without pages counts as the longest page, because its length is unknown.
 */
export function costOf(
  field: Field,
  isRoot: boolean,
  mostFor: MostFor,
): FieldCost {
  const complexity = complexityOf(field);
  if (typeof complexity === 'function') return complexity;
  const pageSize = pageSizeOf(field);
  if (complexity === undefined && pageSize) return pageCost(mostFor, pageSize);
  const usual = isRoot ? 2 : Number(field.extensions.hasResolver === true);
  const own = complexity ?? usual;
  let items = 1;
  if (isList(field)) items = mostFor(Number.POSITIVE_INFINITY);
  return ({ args, childComplexity }) =>
    own + listedIn(args) + items * childComplexity;
}

function pageCost(
  mostFor: MostFor,
  { extensions }: GraphQLArgument,
): FieldCost {
  const maximum = extensions.maximum as number | undefined;
  return ({ args, childComplexity }) => {
    const asked = args.limit ?? args.last ?? args.first;
    const items = mostFor(asked, maximum);
    return 1 + listedValues(args) + items * (1 + childComplexity);
  };
}

/** For the lists of a connection. */
const countedAbove: FieldCost = ({ childComplexity }) => childComplexity;

/** How many values the arguments have that are lists (`state_in`). */
function listedValues(args: Values) {
  let listed = 0;
  for (const value of Object.values(args))
    if (Array.isArray(value)) listed += value.length;
  return listed;
}

/**
 * The number of objects in the lists of an input: each may be written. It does
 * not recurse, because variables may be nested deeper than the stack.
 */
export function listedIn(input: object) {
  let listed = 0;
  const open = [input];
  while (open.length > 0) {
    const next = open.pop() as object;
    const isArray = Array.isArray(next);
    for (const part of Object.values(next)) {
      if (typeof part !== 'object' || part === null) continue;
      open.push(part);
      if (isArray && !Array.isArray(part)) listed += 1;
    }
  }
  return listed;
}

/**
 * Marks the fields with resolvers, before a server such as Apollo's gives one
 * to every field for its plugins.
 *
 * @throws Error for a list with a resolver but without pages or `complexity`,
 *   which would have no limit
 */
export function assertCosts(schema: GraphQLSchema) {
  const faults: string[] = [];
  for (const owner of Object.values(schema.getTypeMap())) {
    if (!isObjectType(owner) || owner.name.startsWith('__')) continue;
    for (const field of Object.values(owner.getFields())) {
      if (!field.resolve) continue;
      field.extensions = { ...field.extensions, hasResolver: true };
      const hasBound = pageSizeOf(field) || complexityOf(field) !== undefined;
      if (isList(field) && !hasBound)
        faults.push(
          `${owner.name}.${field.name} must say what it costs (complexity).`,
        );
    }
  }
  if (faults.length > 0) throw new Error(faults.join('\n'));
}

/** The cost estimate of an operation. */
export interface Estimate {
  /** Its maximum cost. */
  cost: number;
  /**
   * The part that no resolver charges: introspection, and leaf fields beyond
   * those that are free.
   */
  surcharge: number;
  /** Number of root fields that charge themselves. */
  rootFields: number;
  /** True when fields below the root cost something. */
  isNested: boolean;
}

/** The maximum cost of a field. */
interface Cost {
  /**
   * True for a connection's own fields (`totalCount`). Those in its lists cost
   * per item.
   */
  isOnce: boolean;
  /** In the answer. */
  name: string;
  /** True if fields of it cost something. */
  isNested: boolean;
  /** @param leafCost of a leaf field that is not free: 1, or 0 without them */
  of(variables: Values, leafCost: number): number;
}

/** Fields of a selection. */
interface Level {
  /** Of those that cost something. */
  costs: Cost[];
  /** How many leaf fields of the nearest item above are among or in them. */
  leaves: number;
}

/**
 * What a field has: an item or items; a connection's own fields; the items of
 * the connection above; or a part of the item above. In
 *
 *     { petsConnection(first: 2) { totalCount nodes { id place { city } } } }
 *
 * `petsConnection` is `connection`, `nodes` is `itemsOfConnection`, and all else
 * is `part`: `totalCount` of the connection, `place` of an item. `pets` and a
 * field with a resolver, such as `owner`, are `items`.
 */
type Role = 'items' | 'connection' | 'itemsOfConnection' | 'part';

/** @param isItem true for a field of an item */
function roleOf(field: Field, costsItself: boolean, isItem: boolean): Role {
  const isListed = isList(field);
  if (pageSizeOf(field)) return isListed ? 'items' : 'connection';
  if (costsItself) return 'items';
  if (!isListed) return 'part';
  return isItem ? 'items' : 'itemsOfConnection';
}

/**
 * Prepares the estimate of a valid operation, whose fragments do not spread
 * themselves.
 *
 * @returns a function of the variables
 * @throws GraphQLError QUERY_TOO_COSTLY
 */
export function estimateOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  node: OperationDefinitionNode,
  { maxCost, mostFor }: { maxCost: number; mostFor: MostFor },
): (variables: Values) => Estimate {
  const { operation, selectionSet, variableDefinitions = [] } = node;
  const root = schema.getRootType(operation) as GraphQLNamedType;
  const fragments = fragmentsOf(document);
  let hasSurplus = false;

  /** @param isItem false in a connection itself, true in its lists */
  function levelOf(
    parent: GraphQLNamedType,
    sets: readonly SelectionSetNode[],
    isItem: boolean,
  ): Level {
    const types = isAbstractType(parent)
      ? schema.getPossibleTypes(parent)
      : [parent];
    const nodes = sets.flatMap((set) => fieldsIn(set, fragments));
    const costs: Cost[] = [];
    let leaves = 0;
    for (const same of mergedFields(nodes).values()) {
      const levels = types.map((type) => fieldLevel(type, same, isItem));
      costs.push(...levels.flatMap((level) => level.costs));
      leaves += Math.max(...levels.map((level) => level.leaves));
    }
    return { costs, leaves };
  }

  /** @param same the selections of one field */
  function fieldLevel(
    type: GraphQLNamedType,
    same: readonly FieldNode[],
    isItem: boolean,
  ): Level {
    const [node] = same as [FieldNode];
    const field = isObjectType(type) && type.getFields()[node.name.value];
    if (!field) return { costs: [], leaves: 0 };

    const isRoot = type === root;
    const isResolved = field.extensions.hasResolver === true;
    const costsItself =
      isRoot || isResolved || complexityOf(field) !== undefined;
    const role = roleOf(field, costsItself, isItem);
    const isPart = role === 'part' || role === 'itemsOfConnection';

    const sets = same.flatMap(({ selectionSet }) => selectionSet ?? []);
    const areInItem = role === 'part' ? isItem : role !== 'connection';
    const below = levelOf(getNamedType(field.type), sets, areInItem);

    let leaves = Number(sets.length === 0 && isItem && !isResolved);
    let surplus = 0;
    if (isPart) leaves += below.leaves;
    else surplus = Math.max(0, below.leaves - freeLeaves);
    hasSurplus ||= surplus > 0;
    const isNested = below.costs.length > 0;
    if (!costsItself && !isNested && surplus === 0)
      return { costs: [], leaves };

    const once = below.costs.filter(({ isOnce }) => isOnce);
    const perItem = below.costs.filter(({ isOnce }) => !isOnce);
    let costOfField = costOf(field, isRoot, mostFor);
    if (role === 'itemsOfConnection') costOfField = countedAbove;
    const least = Number(costsItself);
    const argumentsIn = argumentReader(node, field);
    const cost: Cost = {
      isOnce: !isItem && role !== 'itemsOfConnection',
      name: (node.alias ?? node.name).value,
      isNested,
      of(variables, leafCost) {
        const args = argumentsIn(variables);
        const childComplexity =
          sumOf(perItem, variables, leafCost) + surplus * leafCost;
        const own = costOfField({ args, childComplexity });
        return Math.max(least, own + sumOf(once, variables, leafCost));
      },
    };
    return { costs: [cost], leaves };
  }

  const { costs } = levelOf(root, [selectionSet], false);
  const introspection = fieldsIn(selectionSet, fragments).filter(({ name }) =>
    /^__(?:schema|type)$/.test(name.value),
  ).length;
  const isNested = costs.some((one) => one.isNested);
  // Each is an own member, because a variable may be named `toString`.
  const defaults = Object.fromEntries(
    variableDefinitions.map(({ variable, defaultValue }) => [
      variable.name.value,
      defaultValue && valueFromASTUntyped(defaultValue),
    ]),
  );
  function estimate(given: Values): Estimate {
    const variables: Values = { ...defaults, ...given };
    const cost = introspection + sumOf(costs, variables, 1);
    if (cost > maxCost) {
      const of = (one: Cost) => one.of(variables, 1);
      const [most] = costs.toSorted((one, other) => of(other) - of(one));
      const part = most ? ` Most of it is ${most.name}.` : '';
      const message = `The operation may cost too much: ${cost}, at most ${maxCost}.${part} Ask for fewer fields or smaller pages.`;
      throw new GraphQLError(message, {
        nodes: node,
        extensions: { code: 'QUERY_TOO_COSTLY' },
      });
    }
    const surcharge = hasSurplus
      ? cost - sumOf(costs, variables, 0)
      : introspection;
    return { cost, surcharge, rootFields: costs.length, isNested };
  }
  return estimate;
}

/** The selections of each field, which execution merges. */
const mergedFields = (nodes: FieldNode[]) =>
  Map.groupBy(nodes, (node) =>
    print({ ...node, directives: [], selectionSet: undefined }),
  );

function sumOf(costs: Cost[], variables: Values, leafCost: number) {
  return costs.reduce((sum, cost) => sum + cost.of(variables, leafCost), 0);
}

function argumentReader(node: FieldNode, { args }: Field) {
  const defaults: Values = Object.fromEntries(
    args.map(({ name, defaultValue }) => [name, defaultValue]),
  );
  return (variables: Values) => {
    const values = { ...defaults };
    for (const { name, value } of node.arguments ?? []) {
      const given = valueFromASTUntyped(value, variables);
      if (given !== undefined) values[name.value] = given;
    }
    return values;
  };
}
