import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql';
import { StoreError } from '../errors.ts';
import { pageLimit } from '../pets/pet.rules.ts';

type Variables = Record<string, unknown>;
type Cost = (variables: Variables) => number;

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
  check(document: DocumentNode, operation: OperationDefinitionNode, variables: Variables): void {
    let cost = this.#costs.get(operation);
    if (!cost) {
      cost = costOf(this.#schema, document, operation);
      this.#costs.set(operation, cost);
    }
    const found = cost(variables);
    if (found > this.#maxCost) throw tooCostly(operation, found, this.#maxCost);
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
  const parts: Cost[] = [];
  for (const node of rootFields(document, operation.selectionSet)) {
    const field = fields[node.name.value];
    if (!field) continue;
    const size = sizeArgument(field);
    if (!size) parts.push(() => 2);
    else {
      const given = node.arguments?.find(({ name }) => name.value === size)?.value;
      parts.push((variables) => 1 + items(given, variables, defaults));
    }
  }
  return (variables) => parts.reduce((sum, part) => sum + part(variables), 0);
}

function sizeArgument({ args }: GraphQLField<unknown, unknown>): string | undefined {
  return args.find(({ name }) => name === 'limit' || name === 'first')?.name;
}

/** What a list may hold: never more than a page, since the service refuses larger ones. */
function items(
  value: ValueNode | undefined,
  variables: Variables,
  defaults: Map<string, ValueNode | undefined>,
): number {
  if (!value || value.kind === Kind.NULL) return pageLimit.default;
  if (value.kind === Kind.VARIABLE) {
    const given = variables[value.name.value];
    if (given === undefined) return items(defaults.get(value.name.value), variables, new Map());
    return given === null ? pageLimit.default : clamp(Number(given));
  }
  return value.kind === Kind.INT ? clamp(Number(value.value)) : 0;
}

function clamp(count: number): number {
  return Number.isFinite(count) ? Math.min(Math.max(count, 0), pageLimit.max) : 0;
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
