import {
  type DocumentNode,
  type FieldNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLSchema,
  isListType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  valueFromASTUntyped,
} from 'graphql';
import { StoreError } from '../../errors.ts';
import { mostItems } from '../../storage/input/page.ts';
import { fragmentIn } from './fragments.ts';

type Values = Record<string, unknown>;

/** The maximum cost of a root field for its arguments, in units of the quotas: type-graphql's `complexity`. */
export type FieldCost = (estimate: { args: Values }) => number;

/** For a list or connection: one for the operation and one for every item that it may return. */
export const pageCost: FieldCost = ({ args }) => 1 + mostItems(args.limit ?? args.first);

const costOfOne: FieldCost = () => 2;
const introspective = ['__schema', '__type'];

/** @throws Error for a root field that returns a list or page without a declared cost: nothing would limit it */
export function costOf({ name, type, args, extensions }: GraphQLField<unknown, unknown>): FieldCost {
  const { complexity } = extensions as { complexity?: FieldCost };
  if (complexity) return complexity;
  const isPaged = args.some(({ name }) => name === 'limit' || name === 'first');
  if (isPaged || isListType(isNonNullType(type) ? type.ofType : type))
    throw new Error(`${name} must say what it costs.`);
  return costOfOne;
}

/** What is known about an operation before it runs. */
interface Operation {
  /** The cost of its introspection, which no resolver charges. */
  introspection: number;
  of(variables: Values): number;
}

/** Limits the estimated cost of operations: the sum of their root fields. */
export class CostLimit {
  readonly #schema: GraphQLSchema;
  readonly #maxCost: number;
  readonly #operations = new WeakMap<OperationDefinitionNode, Operation>();

  constructor(schema: GraphQLSchema, maxCost: number) {
    this.#schema = schema;
    this.#maxCost = maxCost;
  }

  /** @throws GraphQLError QUERY_TOO_COSTLY */
  check(document: DocumentNode, node: OperationDefinitionNode, variables: Values): Pick<Operation, 'introspection'> {
    let operation = this.#operations.get(node);
    if (!operation) {
      operation = this.#measure(document, node);
      this.#operations.set(node, operation);
    }
    const found = operation.of(variables);
    if (found > this.#maxCost) throw tooCostly(node, found, this.#maxCost);
    return operation;
  }

  #measure(document: DocumentNode, operation: OperationDefinitionNode): Operation {
    const fields = this.#schema.getRootType(operation.operation)?.getFields() ?? {};
    const nodes = [...rootFields(document, operation.selectionSet)];
    const introspection = nodes.filter(({ name }) => introspective.includes(name.value)).length;
    const defaults = (operation.variableDefinitions ?? []).map(({ variable, defaultValue }) => [
      variable.name.value,
      defaultValue && valueFromASTUntyped(defaultValue),
    ]);
    const parts = nodes.flatMap((node) => {
      const field = fields[node.name.value];
      return field ? [{ node, field, cost: costOf(field) }] : [];
    });
    const of = (given: Values) => {
      // Without a prototype, because a variable may be named `toString`.
      const variables = Object.assign(Object.create(null), Object.fromEntries(defaults), given);
      return parts.reduce((sum, { node, field, cost }) => sum + cost({ args: argumentsOf(node, field, variables) }), 0);
    };
    return { introspection, of: (given) => introspection + of(given) };
  }
}

function argumentsOf(node: FieldNode, { args }: GraphQLField<unknown, unknown>, variables: Values): Values {
  const values = Object.fromEntries(args.map(({ name, defaultValue }) => [name, defaultValue]));
  for (const { name, value } of node.arguments ?? []) {
    const given = valueFromASTUntyped(value, variables);
    if (given !== undefined) values[name.value] = given;
  }
  return values;
}

function tooCostly(operation: OperationDefinitionNode, found: number, maxCost: number): GraphQLError {
  const message = `The operation may cost too much: ${found}, at most ${maxCost}. Ask for fewer fields or smaller pages.`;
  const originalError = new StoreError('QUERY_TOO_COSTLY', message);
  return new GraphQLError(message, { nodes: operation, originalError, extensions: { http: { status: 400 } } });
}

function* rootFields(
  document: DocumentNode,
  { selections }: SelectionSetNode,
  path: string[] = [],
): Generator<FieldNode> {
  for (const selection of selections) {
    if (selection.kind === Kind.FIELD) yield selection;
    else if (selection.kind === Kind.INLINE_FRAGMENT) yield* rootFields(document, selection.selectionSet, path);
    else {
      const name = selection.name.value;
      const fragment = fragmentIn(document, name);
      if (fragment && !path.includes(name)) yield* rootFields(document, fragment.selectionSet, [...path, name]);
    }
  }
}
