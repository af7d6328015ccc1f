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
 * The most items of a page. @param asked the argument `limit`, `last` or
 * `first`; undefined or null when it is not given
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
 * with a resolver, 0 without. A value in a list of values costs 1. A list without pages counts as the longest page,
 * because its length is unknown.
 */
export function costOf(
  field: Field,
  isRoot: boolean,
  mostItems: MostItems,
): FieldCost {
  const pageCost: FieldCost = ({ args, childComplexity }) => {
    const asked = args.limit ?? args.last ?? args.first;
    return 1 + valuesIn(args) + mostItems(asked) * (1 + childComplexity);
  };
  const own = isPaged(field) ? pageCost : ownCost(field, isRoot);
  const { complexity = own } = field.extensions as {
    complexity?: FieldCost | number;
  };
  if (typeof complexity === 'function') return complexity;
  const items = isList(field) ? mostItems(Number.POSITIVE_INFINITY) : 1;
  return ({ args, childComplexity }) =>
    complexity + listedIn(args) + items * childComplexity;
}

/**
 * The number of objects in the lists of an input: each may be written. It does
 * not recurse, because variables may be nested deeper than the stack.
 */
function listedIn(input: object): number {
  let listed = 0;
  const open = [input];
  for (let next = open.pop(); next; next = open.pop()) {
    const isArray = Array.isArray(next);
    for (const part of Object.values(next)) {
      if (typeof part !== 'object' || part === null) continue;
      open.push(part);
      if (isArray && !Array.isArray(part)) listed += 1;
    }
  }
  return listed;
}

/** The values of filters by several. */
const valuesIn = (args: Values) =>
  Object.values(args).filter(Array.isArray).flat().length;

function ownCost(field: Field, isRoot: boolean): number {
  if (isRoot) return 2;
  return hasResolver(field) ? 1 : 0;
}

const hasResolver = ({ extensions }: Field) => extensions.isRead === true;
const isList = ({ type }: Field) => isListType(getNullableType(type));

/**
 * True for a field whose items cost something. Those of others belong to the
 * items of the field above.
 */
function countsItems(field: Field): boolean {
  const { complexity } = field.extensions;
  if (complexity !== undefined) return complexity !== countedAbove;
  return hasResolver(field) || isPaged(field) || isList(field);
}

/**
 * Marks the fields with resolvers, before a server such as Apollo's gives one
 * to every field for its plugins.
 *
 * @throws Error for a list with a resolver but without pages or `complexity`,
 *   which would have no limit
 */
export function assertCosts(schema: GraphQLSchema): void {
  const faults: string[] = [];
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
        faults.push(
          `${owner.name}.${field.name} must say what it costs (complexity).`,
        );
      }
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

/** Where a selection is. */
interface Level {
  /** The response path of the field above; empty at the root. */
  path: string;
  /** The response path of the field that counts the item. */
  item: string;
  /**
   * False in a connection itself; true in the elements of its `edges` and
   * `nodes`.
   */
  isItem: boolean;
}

/** The maximum cost of a field. */
interface Cost {
  /** True for `edges` and `nodes`, whose items the connection counts. */
  isOfItems: boolean;
  /** By the variables, with or without the leaf fields that are not free. */
  of(variables: Values, hasLeaves: boolean): number;
}

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

  /** The costs of the fields that cost something. */
  function costsIn(
    parent: GraphQLNamedType,
    set: SelectionSetNode,
    level: Level,
  ): Cost[] {
    const types = isAbstractType(parent)
      ? schema.getPossibleTypes(parent)
      : [parent];
    return fieldsIn(set, fragments).flatMap((node) => {
      const costs = types.filter(isObjectType).flatMap((type) => {
        const field = type.getFields()[node.name.value];
        return field ? costsOf(node, field, level) : [];
      });
      const [first] = costs;
      if (!first) return [];
      // The most expensive of the item's possible types.
      const of: Cost['of'] = (...given) =>
        Math.max(...costs.map((cost) => cost.of(...given)));
      return [{ ...first, of }];
    });
  }

  /** Nothing for a field that costs nothing. */
  function costsOf(node: FieldNode, field: Field, level: Level): Cost[] {
    const path = `${level.path}.${(node.alias ?? node.name).value}`;
    const isRoot = level.path === '';
    if (!node.selectionSet && level.isItem && !hasResolver(field))
      leaves.set(level.item, (leaves.get(level.item) ?? new Set()).add(path));

    const isCounted = isRoot || countsItems(field);
    const isInItem = isCounted ? !isPaged(field) : level.isItem;
    const inside: Level = {
      path,
      item: isCounted ? path : level.item,
      isItem: isInItem || isList(field),
    };
    const { selectionSet: set } = node;
    const named = getNamedType(field.type);
    const below = set ? costsIn(named, set, inside) : [];
    if (isRoot && below.length > 0) isNested = true;

    const surplus = Math.max(0, (leaves.get(path)?.size ?? 0) - freeLeaves);
    if (surplus > 0) hasSurplus = true;

    const least = isRoot || hasResolver(field) ? 1 : 0;
    const { complexity } = field.extensions;
    const isOfItems = complexity === countedAbove;
    const hasCost = least > 0 || surplus > 0 || below.length > 0;
    if (!hasCost && (isOfItems || complexity === undefined)) return [];

    const cost = costOf(field, isRoot, mostItems);
    const isConnection = isPaged(field) && !isList(field);
    const isOnce = (one: Cost) => isConnection && !one.isOfItems;
    const once = below.filter(isOnce);
    const ofItems = below.filter((one) => !isOnce(one));
    const of: Cost['of'] = (variables, hasLeaves) => {
      const args = argumentValues(node, field, variables);
      const childComplexity =
        sumOf(ofItems, variables, hasLeaves) + (hasLeaves ? surplus : 0);
      const own = cost({ args, childComplexity });
      return Math.max(least, own + sumOf(once, variables, hasLeaves));
    };
    return [{ isOfItems, of }];
  }

  const root = schema.getRootType(operation);
  const atRoot: Level = { path: '', item: '', isItem: false };
  const costs = root ? costsIn(root, selectionSet, atRoot) : [];
  // Without a prototype, because a variable may be named `toString`.
  const defaults: Values = { __proto__: null };
  for (const { variable, defaultValue } of variableDefinitions) {
    if (defaultValue)
      defaults[variable.name.value] = valueFromASTUntyped(defaultValue);
  }
  return (given) => {
    const variables: Values = { __proto__: null, ...defaults, ...given };
    const cost = introspection + sumOf(costs, variables, true);
    if (cost > maxCost) {
      const message = `The operation may cost too much: ${cost}, at most ${maxCost}. Ask for fewer fields or smaller pages.`;
      throw new GraphQLError(message, {
        nodes: node,
        extensions: { code: 'QUERY_TOO_COSTLY' },
      });
    }
    const surcharge = hasSurplus
      ? cost - sumOf(costs, variables, false)
      : introspection;
    return { cost, surcharge, rootFields: costs.length, isNested };
  };
}

function sumOf(costs: readonly Cost[], ...given: Parameters<Cost['of']>) {
  return costs.reduce((sum, cost) => sum + cost.of(...given), 0);
}

function argumentValues(
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
