import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  type NameNode,
  type OperationDefinitionNode,
  OperationTypeNode,
  visit,
} from 'graphql';
import { type CompiledQuery, compileQuery, isCompiledQuery } from 'graphql-jit';
import { LRUCache } from 'lru-cache';

/**
 * Limits of the cache: the number of operations, and the total length of their documents in characters. One of two
 * kilobytes may hold a hundred operations, and each is compiled by itself.
 */
const capacity = { max: 500, maxSize: 1_000_000 };

export interface ExecutorOptions {
  /** Whether operations are compiled; the results are the same. */
  jit: boolean;
  /** Whether errors about variables suggest names of the schema. */
  suggestions: boolean;
}

export interface Execution {
  document: DocumentNode;
  /** The operation to execute; undefined when the requested name matches none. */
  operation: OperationDefinitionNode | undefined;
  operationName?: string | undefined;
  context: unknown;
  variables: Record<string, unknown> | undefined;
}

/** An operation is compiled at its second use; some cannot be compiled. */
type Compiled = CompiledQuery['query'];
type Known = Compiled | 'seen' | 'impossible';

/**
 * Executes operations with graphql-jit: an operation is compiled to a function at its second use. Operations that it
 * cannot compile, or rejects before anything has run, are left to graphql-js, which has the last word.
 */
export class Executor {
  readonly #schema: GraphQLSchema;
  readonly #options: ExecutorOptions;
  readonly #known = new LRUCache<OperationDefinitionNode, Known>(capacity);

  constructor(schema: GraphQLSchema, options: ExecutorOptions) {
    this.#schema = schema;
    this.#options = options;
  }

  async execute(execution: Execution): Promise<ExecutionResult> {
    const { document, operation, context, variables } = execution;
    const compiled = this.#options.jit && operation ? this.#compiled(document, operation) : undefined;
    if (!compiled) return this.#interpret(execution);
    const result = await compiled(undefined, context, variables ?? {});
    // Without data nothing has run: graphql-jit rejected the variables. graphql-js supports more of them (defaults of
    // non-null input fields, int64 as bigint), and reports errors in its own words.
    if (result.data === undefined) return this.#interpret(execution);
    return result.errors ? { data: result.data, errors: result.errors.map(asGraphQLError) } : result;
  }

  #interpret({ document, operationName, context, variables }: Execution) {
    return execute({
      schema: this.#schema,
      document,
      operationName,
      contextValue: context,
      variableValues: variables,
      // Every error about a variable repeats the whole input, so a few are enough.
      options: { maxCoercionErrors: 5 },
      hideSuggestions: !this.#options.suggestions,
    });
  }

  #compiled(document: DocumentNode, operation: OperationDefinitionNode): Compiled | undefined {
    const known = this.#known.get(operation);
    if (known !== undefined && known !== 'seen') return known === 'impossible' ? undefined : known;
    // Compiling at the first use costs more than it saves, and an attacker could trigger it for free.
    if (known === undefined) return this.#remember(operation, document, 'seen');
    const isWorthIt = isSuitable(document, operation);
    return this.#remember(operation, document, (isWorthIt && this.#compile(document, operation)) || 'impossible');
  }

  #remember(operation: OperationDefinitionNode, { loc }: DocumentNode, known: Known): Compiled | undefined {
    this.#known.set(operation, known, { size: 1 + (loc?.end ?? 0) });
    return typeof known === 'string' ? undefined : known;
  }

  #compile(document: DocumentNode, operation: OperationDefinitionNode): Compiled | undefined {
    const compiled = compileQuery(this.#schema, document, operation.name?.value, {
      disablingCapturingStackErrors: true,
    });
    return isCompiledQuery(compiled) ? compiled.query : undefined;
  }
}

/** Whether graphql-jit returns the same as graphql-js (`test/deep/graphql/compiled.test.ts` compares them). */
export function isSuitable(document: DocumentNode, operation: OperationDefinitionNode): boolean {
  // graphql-jit assigns to aliases: an alias `__proto__` would not become a member.
  if (document.loc?.source.body.includes('__proto__')) return false;
  if (!isPlain(document)) return false;
  if (operation.operation !== OperationTypeNode.MUTATION) return true;
  // graphql-jit runs the mutations after a failed one, although the response says that there is no data.
  return isSingleField(operation);
}

/** True when no other part of the operation can have run before its field. */
export function isSingleField({ selectionSet: { selections } }: OperationDefinitionNode): boolean {
  return selections.length === 1 && selections[0]?.kind === Kind.FIELD;
}

/**
 * True without conditions, variables inside input objects, and introspection. Where conditions meet fragments,
 * graphql-jit returns wrong data: a fragment counts as visited after its first spread, even a conditional one, and a
 * field in a fragment loses the condition of its parent (https://github.com/zalando-incubator/graphql-jit/issues/111).
 * From a variable inside an input object it accepts null, even for a field that has a default and cannot be null
 * (https://github.com/zalando-incubator/graphql-jit/issues/230). Introspection blocks the process ten times as long
 * when it is compiled.
 */
function isPlain(document: DocumentNode): boolean {
  let plain = true;
  const unless =
    (...names: string[]) =>
    ({ name }: { name: NameNode }) => {
      plain &&= !names.includes(name.value);
    };
  visit(document, {
    Directive: unless('skip', 'include'),
    Field: unless('__schema', '__type'),
    ObjectField({ value }) {
      plain &&= value.kind !== Kind.VARIABLE;
    },
  });
  return plain;
}

/**
 * graphql-jit's errors lack parts of graphql-js's, for example `extensions` and `toJSON`
 * (https://github.com/zalando-incubator/graphql-jit/issues/234).
 */
function asGraphQLError({ message, path, locations, originalError }: GraphQLError): GraphQLError {
  return Object.assign(new GraphQLError(message, { path, originalError }), { locations });
}
