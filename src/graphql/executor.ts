import {
  type DocumentNode,
  type ExecutionResult,
  type FormattedExecutionResult,
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

/** Limits of the cache: the number of operations, and the total length of their documents in characters. */
const capacity = { max: 500, maxSize: 1_000_000 };

export interface Execution {
  document: DocumentNode;
  /** The operation to execute; undefined when the requested name matches none. */
  operation: OperationDefinitionNode | undefined;
  context: unknown;
  variables: Record<string, unknown> | undefined;
}

/** Serialises the `data` of a compiled operation without checking the type of every value. */
type Stringify = (result: FormattedExecutionResult) => string;

const stringify = Symbol('stringify');
type Compiled = Record<symbol, Stringify | undefined>;

/** A document is compiled at its second use; some cannot be compiled. */
type Known = CompiledQuery | 'seen' | 'impossible';

/**
 * Executes operations with graphql-jit: an operation is compiled to a function at its second use. Operations that it
 * cannot compile, or rejects before anything has run, are left to graphql-js, which has the last word.
 */
export class Executor {
  readonly #schema: GraphQLSchema;
  readonly #compiled = new LRUCache<string, Known>(capacity);

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /**
   * @param hash identifies the text of the document.
   * @returns undefined when graphql-js must run it; nothing has run then.
   */
  async execute(hash: string, execution: Execution): Promise<ExecutionResult | undefined> {
    // Keyed by the operation found, never by the requested name: that may match none, and be as long as a body.
    const { document, operation } = execution;
    if (!operation) return undefined;
    const compiled = this.#compile(`${hash} ${operation.name?.value ?? ''}`, document, operation);
    if (!compiled) return undefined;
    const result = await compiled.query(undefined, execution.context, execution.variables ?? {});
    // Without data nothing has run: graphql-jit rejected the variables. graphql-js supports more of them (defaults of
    // non-null input fields, int64 as bigint), and reports errors in its own words.
    if (result.data === undefined) return undefined;
    if (result.errors) return { ...result, errors: result.errors.map(asGraphQLError) };
    // Not in a WeakMap: with one entry per response, garbage collection becomes the most expensive part of a response.
    if (result.data) (result.data as Compiled)[stringify] = compiled.stringify as Stringify;
    return result;
  }

  /** Serialises a result as JSON. */
  stringify(result: FormattedExecutionResult): string {
    const compiled = result.errors ? undefined : (result.data as Compiled | null | undefined)?.[stringify];
    return compiled ? compiled(result) : JSON.stringify(result);
  }

  #compile(key: string, document: DocumentNode, operation: OperationDefinitionNode): CompiledQuery | undefined {
    const known = this.#compiled.get(key);
    if (known !== undefined && known !== 'seen') return known === 'impossible' ? undefined : known;
    // Compiling at the first use costs more than it saves, and an attacker could trigger it for free.
    if (known === undefined) return this.#remember(key, document, 'seen');
    if (!isSuitable(document, operation)) return this.#remember(key, document, 'impossible');
    const compiled = compileQuery(this.#schema, document, operation.name?.value, {
      customJSONSerializer: true,
      disablingCapturingStackErrors: true,
    });
    return this.#remember(key, document, isCompiledQuery(compiled) ? compiled : 'impossible');
  }

  #remember(key: string, { loc }: DocumentNode, known: Known): CompiledQuery | undefined {
    this.#compiled.set(key, known, { size: 1 + (loc?.end ?? 0) });
    return typeof known === 'string' ? undefined : known;
  }
}

/** Whether graphql-jit returns the same as graphql-js (`test/graphql/compiled.test.ts` compares them). */
function isSuitable(document: DocumentNode, operation: OperationDefinitionNode): boolean {
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
