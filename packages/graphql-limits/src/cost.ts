import {
  type DocumentNode,
  type FieldNode,
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
  type SelectionSetNode,
  valueFromASTUntyped,
} from 'graphql';
import { fieldsIn, fragmentsOf } from './limits.ts';

type Values = Record<string, unknown>;
type Field = GraphQLField<unknown, unknown>;

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
 * The most items of a page. @param asked the argument `limit` or `first`;
 * undefined or null when it is not given
 */
export type MostItems = (asked: unknown) => number;

const isPaged = ({ args }: Field) =>
  args.some(({ name }) => name === 'limit' || name === 'first');

/**
 * For the items of a page, which the field with `limit` or `first` has counted.
 */
export const countedAbove: FieldCost = ({ childComplexity }) => childComplexity;

/**
 * The number of leaf fields that an item has for nothing. Each further one
 * costs as much as the item.
 */
const freeLeaves = 10;

/**
 * The cost of a field: its `complexity`, if it has one. Otherwise, with `limit`
 * or `first`: 1, plus 1 and the cost of its fields for each item, plus once the
 * cost of the fields beside a connection's lists. Otherwise 2 at the root, 1
 * with a resolver, 0 without. A list without pages counts as the longest page,
 * because its length is unknown.
 */
export function costOf(
  field: Field,
  isRoot: boolean,
  mostItems: MostItems,
): FieldCost {
  const pageCost: FieldCost = ({ args, childComplexity }) =>
    1 + mostItems(args.limit ?? args.first) * (1 + childComplexity);
  const otherwise = isPaged(field)
    ? pageCost
    : isRoot
      ? 2
      : isRead(field)
        ? 1
        : 0;
  const { complexity = otherwise } = field.extensions as {
    complexity?: FieldCost | number;
  };
  if (typeof complexity === 'function') return complexity;
  const items = isList(field) ? mostItems(Number.POSITIVE_INFINITY) : 1;
  return ({ childComplexity }) => complexity + items * childComplexity;
}

const isRead = ({ extensions }: Field) => extensions.isRead === true;
const isList = ({ type }: Field) => isListType(getNullableType(type));

/**
 * True for a field whose items cost something. Those of others belong to the
 * items of the field above.
 */
function countsItems(field: Field): boolean {
  const { complexity } = field.extensions;
  return complexity === undefined
    ? isRead(field) || isPaged(field) || isList(field)
    : complexity !== countedAbove;
}

/**
 * Marks the fields with resolvers, before a server such as Apollo's gives one
 * to every field for its plugins.
 *
 * @throws Error for a list with a resolver but without pages or `complexity`,
 *   which would have no limit
 */
export function assertCosts(schema: GraphQLSchema): void {
  for (const owner of Object.values(schema.getTypeMap())) {
    if (!isObjectType(owner) || owner.name.startsWith('__')) continue;
    for (const field of Object.values(owner.getFields())) {
      if (!field.resolve) continue;
      field.extensions = { ...field.extensions, isRead: true };
      if (
        isList(field) &&
        !isPaged(field) &&
        field.extensions.complexity === undefined
      ) {
        throw new Error(
          `${owner.name}.${field.name} must say what it costs (complexity).`,
        );
      }
    }
  }
}

/** The cost estimate of an operation. */
export interface Estimate {
  /** Its maximum cost. */
  cost: number;
  /**
   * The part that no resolver charges: introspection, and leaf fields beyond
   * those that are free.
   */
  fixed: number;
  /** Number of root fields that charge themselves. */
  rootFields: number;
  /** True when fields below the root cost something. */
  isNested: boolean;
}

/**
 * The maximum cost of a field or operation, by its variables, with or without
 * the leaf fields that are not free.
 */
type Cost = (variables: Values, hasLeaves: boolean) => number;

/**
 * Prepares the estimate of a valid operation, whose fragments do not spread
 * themselves.
 *
 * @returns a function of the variables. @throws GraphQLError QUERY_TOO_COSTLY
 */
export function estimateOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  node: OperationDefinitionNode,
  { maxCost, mostItems }: { maxCost: number; mostItems: MostItems },
): (variables: Values) => Estimate {
  const { operation, selectionSet, variableDefinitions = [] } = node;
  const fragments = fragmentsOf(document);
  const roots = fieldsIn(selectionSet, fragments).map(({ name }) => name.value);
  const introspection = roots.filter(
    (name) => name === '__schema' || name === '__type',
  ).length;
  let isNested = false;
  let hasSurplus = false;

  /**
   * The response paths of the leaf fields of an item, by that of the field that
   * counts it.
   */
  const leaves = new Map<string, Set<string>>();

  /**
   * The costs of the fields that cost something. A connection itself is no item
   * (`isItem` is false); the elements of its `edges` and `nodes` are. Its other
   * fields are added to `beside`.
   */
  function costsIn(
    parent: GraphQLNamedType,
    set: SelectionSetNode,
    path = '',
    item = '',
    isItem = false,
    beside?: Cost[],
  ): Cost[] {
    const types = isAbstractType(parent)
      ? schema.getPossibleTypes(parent)
      : [parent];
    const isRoot = path === '';
    return fieldsIn(set, fragments).flatMap((node) => {
      const at = `${path}.${(node.alias ?? node.name).value}`;
      const costs = types.flatMap((type): Cost[] => {
        const field = isObjectType(type)
          ? type.getFields()[node.name.value]
          : undefined;
        if (!field) return [];
        const [owner, isOwned] =
          isRoot || countsItems(field) ? [at, !isPaged(field)] : [item, isItem];
        if (!node.selectionSet && isItem && !isRead(field))
          leaves.set(item, (leaves.get(item) ?? new Set()).add(at));
        const named = getNamedType(field.type);
        const once: Cost[] = [];
        const isConnection = isPaged(field) && !isList(field);
        const below = node.selectionSet
          ? costsIn(
              named,
              node.selectionSet,
              at,
              owner,
              isOwned || isList(field),
              isConnection ? once : undefined,
            )
          : [];
        isNested ||= isRoot && below.length + once.length > 0;
        const surplus = Math.max(0, (leaves.get(at)?.size ?? 0) - freeLeaves);
        hasSurplus ||= surplus > 0;
        const least = isRoot || isRead(field) ? 1 : 0;
        const { complexity = countedAbove } = field.extensions;
        if (
          least === 0 &&
          surplus === 0 &&
          below.length === 0 &&
          complexity === countedAbove
        )
          return [];
        const cost = costOf(field, isRoot, mostItems);
        const own: Cost = (variables, hasLeaves) => {
          const args = argumentsOf(node, field, variables);
          const childComplexity =
            sumOf(below, variables, hasLeaves) + (hasLeaves ? surplus : 0);
          const ofPage = cost({ args, childComplexity });
          return Math.max(least, ofPage + sumOf(once, variables, hasLeaves));
        };
        const isOfItems = field.extensions.complexity === countedAbove;
        if (!beside || isOfItems) return [own];
        beside.push(own);
        return [];
      });
      // The most expensive of the item's possible types.
      return costs.length > 0
        ? [(...given) => Math.max(...costs.map((cost) => cost(...given)))]
        : [];
    });
  }

  const root = schema.getRootType(operation);
  const costs = root ? costsIn(root, selectionSet) : [];
  const defaults = variableDefinitions.map(({ variable, defaultValue }) => [
    variable.name.value,
    defaultValue && valueFromASTUntyped(defaultValue),
  ]);
  const estimate = (variables: Values) => {
    const cost = introspection + sumOf(costs, variables, true);
    if (cost > maxCost) {
      const message = `The operation may cost too much: ${cost}, at most ${maxCost}. Ask for fewer fields or smaller pages.`;
      throw new GraphQLError(message, {
        nodes: node,
        extensions: { code: 'QUERY_TOO_COSTLY' },
      });
    }
    const fixed = hasSurplus
      ? cost - sumOf(costs, variables, false)
      : introspection;
    return { cost, fixed, rootFields: costs.length, isNested };
  };
  // Without a prototype, because a variable may be named `toString`.
  return (given) =>
    estimate(
      Object.assign(Object.create(null), Object.fromEntries(defaults), given),
    );
}

function sumOf(costs: readonly Cost[], ...given: Parameters<Cost>): number {
  return costs.reduce((sum, cost) => sum + cost(...given), 0);
}

function argumentsOf(
  node: FieldNode,
  { args }: Field,
  variables: Values,
): Values {
  const values = Object.fromEntries(
    args.map(({ name, defaultValue }) => [name, defaultValue]),
  );
  for (const { name, value } of node.arguments ?? []) {
    const given = valueFromASTUntyped(value, variables);
    if (given !== undefined) values[name.value] = given;
  }
  return values;
}
