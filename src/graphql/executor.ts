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

/** How much is kept: operations, and all of their documents together, in characters. */
const capacity = { max: 500, maxSize: 1_000_000 };

export interface Execution {
  document: DocumentNode;
  /** The one of its operations that is to be executed; undefined when the name that was sent names none. */
  operation: OperationDefinitionNode | undefined;
  context: unknown;
  variables: Record<string, unknown> | undefined;
}

/** Serialises the `data` of a compiled operation without looking at every value's type. */
type Stringify = (result: FormattedExecutionResult) => string;

const stringify = Symbol('stringify');
type Compiled = Record<symbol, Stringify | undefined>;

/** A document is compiled when it comes a second time; some cannot be. */
type Known = CompiledQuery | 'seen' | 'impossible';

/**
 * Executes operations with graphql-jit: an operation that comes a second time is compiled to a function. What it cannot
 * compile, and what it refuses before anything has run, is left to graphql-js, whose word counts.
 */
export class Executor {
  readonly #schema: GraphQLSchema;
  readonly #compiled = new LRUCache<string, Known>(capacity);

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** @param hash identifies the text of the document. @returns undefined when graphql-js must do it; nothing has run then. */
  async execute(hash: string, execution: Execution): Promise<ExecutionResult | undefined> {
    // By the operation that exists, never by the name that was sent: that may name none, and fill a body.
    const { document, operation } = execution;
    if (!operation) return undefined;
    const compiled = this.#compile(`${hash} ${operation.name?.value ?? ''}`, document, operation);
    if (!compiled) return undefined;
    const result = await compiled.query(undefined, execution.context, execution.variables ?? {});
    // Without data nothing has run: graphql-jit did not like the variables. graphql-js knows more of them (defaults of
    // non-null input fields, int64 as bigint), and says what is wrong in its own words.
    if (result.data === undefined) return undefined;
    if (result.errors) return { ...result, errors: result.errors.map(asGraphQLError) };
    // Not in a WeakMap: one entry for every answer makes the garbage collector the most expensive part of it.
    if (result.data) (result.data as Compiled)[stringify] = compiled.stringify as Stringify;
    return result;
  }

  /** The JSON of a result. */
  stringify(result: FormattedExecutionResult): string {
    const compiled = result.errors ? undefined : (result.data as Compiled | null | undefined)?.[stringify];
    return compiled ? compiled(result) : JSON.stringify(result);
  }

  #compile(key: string, document: DocumentNode, operation: OperationDefinitionNode): CompiledQuery | undefined {
    const known = this.#compiled.get(key);
    if (known !== undefined && known !== 'seen') return known === 'impossible' ? undefined : known;
    // Compiling costs more than it saves the first time, and would cost an attacker nothing.
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

/** Whether graphql-jit answers it as graphql-js does (`test/graphql/compiled.test.ts` compares them). */
function isSuitable(document: DocumentNode, operation: OperationDefinitionNode): boolean {
  // It assigns to aliases: one named so would not be a member.
  if (document.loc?.source.body.includes('__proto__')) return false;
  if (!isPlain(document)) return false;
  if (operation.operation !== OperationTypeNode.MUTATION) return true;
  // It runs the mutations after one that has failed, although the answer says that there is no data.
  return isSingleField(operation);
}

/** True when nothing else of the operation can have run before its field. */
export function isSingleField({ selectionSet: { selections } }: OperationDefinitionNode): boolean {
  return selections.length === 1 && selections[0]?.kind === Kind.FIELD;
}

/**
 * Without conditions: where they meet fragments, graphql-jit answers wrong data. A fragment counts as visited after its
 * first spread, even a conditional one, and a field in a fragment loses the condition of its parent
 * (https://github.com/zalando-incubator/graphql-jit/issues/111). Without variables inside input objects: it takes null for
 * one that has a default and cannot be null. And without introspection, which blocks the process ten times as long when it
 * is compiled.
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

/** graphql-jit's errors lack what graphql-js's have, `extensions` and `toJSON` among it. */
function asGraphQLError({ message, path, locations, originalError }: GraphQLError): GraphQLError {
  return Object.assign(new GraphQLError(message, { path, originalError }), { locations });
}
