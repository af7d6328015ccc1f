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
import { StoreError } from '../../errors.ts';
import { mostItems, pageLimit } from '../../storage/input/page.ts';
import { type Fragments, fieldsIn, fragmentsOf } from './selections.ts';

type Values = Record<string, unknown>;
type Field = GraphQLField<unknown, unknown>;

/**
 * The maximum cost of a field for its arguments, in units of the quotas: type-graphql's `complexity`. `childComplexity`
 * is the cost of the fields selected on one item.
 */
export type FieldCost = (estimate: { args: Values; childComplexity: number }) => number;

/** For a list or connection: one for itself, and for every item that it may return one and the cost of its fields. */
const pageCost: FieldCost = ({ args, childComplexity }) =>
  1 + mostItems(args.limit ?? args.first) * (1 + childComplexity);

const isPaged = ({ args }: Field) => args.some(({ name }) => name === 'limit' || name === 'first');

/** For the items of a page, which the field that has its `limit` or `first` has counted. */
export const countedAbove: FieldCost = ({ childComplexity }) => childComplexity;

/**
 * The cost of a field without `complexity`: that of its page; or one for an operation, and one for the item that a
 * resolver may read. What was read with its parent costs nothing itself; a list of that kind has no known length and
 * counts as a full page.
 */
export function costOf(field: Field, isRoot: boolean): FieldCost {
  const otherwise = isPaged(field) ? pageCost : isRoot ? 2 : field.resolve ? 1 : 0;
  const { complexity = otherwise } = field.extensions as { complexity?: FieldCost | number };
  if (typeof complexity === 'function') return complexity;
  const items = isListType(getNullableType(field.type)) ? pageLimit.max : 1;
  return ({ childComplexity }) => complexity + items * childComplexity;
}

/** @throws Error naming a list with a resolver that has neither pages nor `complexity`: nothing would limit it */
export function assertCosts(schema: GraphQLSchema): void {
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  for (const owner of Object.values(schema.getTypeMap())) {
    if (!isObjectType(owner) || owner.name.startsWith('__')) continue;
    for (const field of Object.values(owner.getFields())) {
      const isRead = field.resolve !== undefined || roots.includes(owner);
      if (!isRead || !isListType(getNullableType(field.type)) || isPaged(field)) continue;
      if (field.extensions.complexity === undefined) {
        throw new Error(`${owner.name}.${field.name} must say what it costs (complexity).`);
      }
    }
  }
}

/** What is known about an operation before it runs. */
export interface Estimate {
  /** Its maximum cost. */
  cost: number;
  /** The cost of its introspection, which no resolver charges. */
  introspection: number;
  /** How many root fields are charged by themselves. */
  rootFields: number;
  /** True when fields below the root cost something. */
  isNested: boolean;
}

/** A field that costs something, as each type that it may be selected on defines it. */
interface Part {
  node: FieldNode;
  definitions: Array<{ field: Field; least: number; cost: FieldCost; below: Part[] }>;
}

type Operation = (variables: Values) => Estimate;

/** Limits the estimated cost of operations. */
export class CostLimit {
  readonly #schema: GraphQLSchema;
  readonly #maxCost: number;
  readonly #operations = new WeakMap<OperationDefinitionNode, Operation>();

  constructor(schema: GraphQLSchema, maxCost: number) {
    this.#schema = schema;
    this.#maxCost = maxCost;
  }

  /** @throws GraphQLError QUERY_TOO_COSTLY */
  check(document: DocumentNode, node: OperationDefinitionNode, variables: Values): Estimate {
    let operation = this.#operations.get(node);
    if (!operation) {
      operation = this.#measure(document, node);
      this.#operations.set(node, operation);
    }
    const estimate = operation(variables);
    if (estimate.cost > this.#maxCost) throw tooCostly(node, estimate.cost, this.#maxCost);
    return estimate;
  }

  #measure(document: DocumentNode, { operation, selectionSet, variableDefinitions = [] }: OperationDefinitionNode) {
    const fragments = fragmentsOf(document);
    const nodes = fieldsIn(selectionSet, fragments);
    const introspection = nodes.filter(({ name }) => name.value === '__schema' || name.value === '__type').length;
    const root = this.#schema.getRootType(operation);
    const parts = root ? this.#partsOf(root, selectionSet, fragments, true) : [];
    const isNested = parts.some(({ definitions }) => definitions.some(({ below }) => below.length > 0));
    const defaults = variableDefinitions.map(({ variable, defaultValue }) => [
      variable.name.value,
      defaultValue && valueFromASTUntyped(defaultValue),
    ]);
    const of: Operation = (given) => {
      // Without a prototype, because a variable may be named `toString`.
      const variables = Object.assign(Object.create(null), Object.fromEntries(defaults), given);
      const cost = introspection + sumOf(parts, variables);
      return { cost, introspection, rootFields: parts.length, isNested };
    };
    if (variableDefinitions.length > 0) return of;
    const estimate = of({});
    return () => estimate;
  }

  /** Of a valid operation, whose fragments do not spread themselves. */
  #partsOf(parent: GraphQLNamedType, selections: SelectionSetNode, fragments: Fragments, isRoot = false): Part[] {
    const types = isAbstractType(parent) ? this.#schema.getPossibleTypes(parent) : [parent];
    return fieldsIn(selections, fragments).flatMap((node) => {
      const definitions = types.flatMap((type) => {
        const field = isObjectType(type) ? type.getFields()[node.name.value] : undefined;
        if (!field) return [];
        const below = node.selectionSet ? this.#partsOf(getNamedType(field.type), node.selectionSet, fragments) : [];
        const least = isRoot || field.resolve ? 1 : 0;
        const { complexity = countedAbove } = field.extensions;
        const isFree = least === 0 && below.length === 0 && complexity === countedAbove;
        return isFree ? [] : [{ field, least, cost: costOf(field, isRoot), below }];
      });
      return definitions.length > 0 ? [{ node, definitions }] : [];
    });
  }
}

function sumOf(parts: readonly Part[], variables: Values): number {
  let sum = 0;
  for (const { node, definitions } of parts) {
    let greatest = 0;
    for (const { field, least, cost, below } of definitions) {
      const found = cost({ args: argumentsOf(node, field, variables), childComplexity: sumOf(below, variables) });
      greatest = Math.max(greatest, least, found);
    }
    sum += greatest;
  }
  return sum;
}

function argumentsOf(node: FieldNode, { args }: Field, variables: Values): Values {
  const values = Object.fromEntries(args.map(({ name, defaultValue }) => [name, defaultValue]));
  for (const { name, value } of node.arguments ?? []) {
    const given = valueFromASTUntyped(value, variables);
    if (given !== undefined) values[name.value] = given;
  }
  return values;
}

function tooCostly(operation: OperationDefinitionNode, found: number, maxCost: number): GraphQLError {
  const message = `The operation may cost too much: ${found}, at most ${maxCost}. Ask for fewer fields or smaller pages.`;
  return new GraphQLError(message, { nodes: operation, originalError: new StoreError('QUERY_TOO_COSTLY', message) });
}
