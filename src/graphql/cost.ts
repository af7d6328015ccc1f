import {
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLArgument,
  GraphQLError,
  type GraphQLField,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql';
import { StoreError } from '../errors.ts';
import { itemsIn } from '../pets/pet.rules.ts';
import { measurer } from './limits.ts';

type Variables = Record<string, unknown>;

/** What an operation may cost, and how much of it is introspection, which no resolver charges. */
interface Cost {
  of(variables: Variables): number;
  introspection: number;
  /** How many times its answer may repeat what is read: once, and once for every alias below the root. */
  copies: number;
}

/**
 * Measures what an operation may cost: one for every root field and one for every animal that it may answer, `limit` or
 * `first` of them. It is the currency of the quotas, estimated beforehand.
 */
export class CostLimit {
  readonly #schema: GraphQLSchema;
  readonly #maxCost: number;
  readonly #costs = new WeakMap<OperationDefinitionNode, Cost>();

  constructor(schema: GraphQLSchema, maxCost: number) {
    this.#schema = schema;
    this.#maxCost = maxCost;
  }

  /** @throws GraphQLError QUERY_TOO_COSTLY */
  check(document: DocumentNode, operation: OperationDefinitionNode, variables: Variables): Cost {
    let cost = this.#costs.get(operation);
    if (!cost) {
      cost = costOf(this.#schema, document, operation);
      this.#costs.set(operation, cost);
    }
    const found = cost.of(variables);
    if (found > this.#maxCost) throw tooCostly(operation, found, this.#maxCost);
    return cost;
  }
}

function tooCostly(operation: OperationDefinitionNode, found: number, maxCost: number): GraphQLError {
  const message = `The operation may cost too much: ${found}, at most ${maxCost}. Ask for fewer fields or smaller pages.`;
  const originalError = new StoreError('QUERY_TOO_COSTLY', message);
  return new GraphQLError(message, { nodes: operation, originalError, extensions: { http: { status: 400 } } });
}

function costOf(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode): Cost {
  const fields = schema.getRootType(operation.operation)?.getFields() ?? {};
  const defaults = new Map(operation.variableDefinitions?.map((node) => [node.variable.name.value, node.defaultValue]));
  const parts: Array<(variables: Variables) => number> = [];
  let introspection = 0;
  // A fragment's aliases repeat what is read at every place where it is spread.
  let copies = 1 + measurer(document)(operation.selectionSet).aliases;
  for (const node of rootFields(document, operation.selectionSet)) {
    if (node.alias && copies > 1) copies -= 1;
    const field = fields[node.name.value];
    if (node.name.value === '__schema' || node.name.value === '__type') introspection += 1;
    if (!field) continue;
    const size = sizeArgument(field);
    const given = size && node.arguments?.find(({ name }) => name.value === size.name)?.value;
    parts.push(size ? (variables) => 1 + itemsIn(valueAt(given || undefined, variables, defaults)) : () => 2);
  }
  return {
    introspection,
    copies,
    of: (variables) => parts.reduce((sum, part) => sum + part(variables), introspection),
  };
}

/** The argument that says how long a list may be. */
export function sizeArgument({ args }: GraphQLField<unknown, unknown>): GraphQLArgument | undefined {
  return args.find(({ name }) => name === 'limit' || name === 'first');
}

/** What will stand there when it is run: a literal, a variable, or the variable's default. */
function valueAt(
  node: ValueNode | undefined,
  variables: Variables,
  defaults?: Map<string, ValueNode | undefined>,
): unknown {
  if (node?.kind !== Kind.VARIABLE) return node?.kind === Kind.INT ? node.value : undefined;
  const name = node.name.value;
  // Not what an object inherits: a variable may be named `toString`.
  return Object.hasOwn(variables, name) ? variables[name] : valueAt(defaults?.get(name), variables);
}

function* rootFields(
  document: DocumentNode,
  { selections }: SelectionSetNode,
  path: string[] = [],
): Generator<RootField> {
  for (const selection of selections) {
    if (selection.kind === Kind.FIELD) yield selection;
    else if (selection.kind === Kind.INLINE_FRAGMENT) yield* rootFields(document, selection.selectionSet, path);
    else {
      const name = selection.name.value;
      const fragment = document.definitions.find(
        (node): node is FragmentDefinitionNode => node.kind === Kind.FRAGMENT_DEFINITION && node.name.value === name,
      );
      if (fragment && !path.includes(name)) yield* rootFields(document, fragment.selectionSet, [...path, name]);
    }
  }
}

type RootField = Extract<SelectionSetNode['selections'][number], { kind: Kind.FIELD }>;
