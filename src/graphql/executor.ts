import {
  type DocumentNode,
  type ExecutionResult,
  type FormattedExecutionResult,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  OperationTypeNode,
} from 'graphql';
import { type CompiledQuery, compileQuery, isCompiledQuery } from 'graphql-jit';
import { LRUCache } from 'lru-cache';

/** How many compiled operations are kept. */
const capacity = 500;

export interface Execution {
  document: DocumentNode;
  operationName: string | undefined;
  context: unknown;
  variables: Record<string, unknown> | undefined;
}

/** Serialises the `data` of a compiled operation without looking at every value's type. */
type Stringify = (result: FormattedExecutionResult) => string;

const stringify = Symbol('stringify');
type Compiled = Record<symbol, Stringify | undefined>;

/**
 * Executes operations with graphql-jit: an operation that comes a second time is compiled to a function. What it cannot
 * compile, and what it refuses before anything has run, is left to graphql-js, whose word counts.
 */
export class Executor {
  readonly #schema: GraphQLSchema;
  readonly #compiled = new LRUCache<string, CompiledQuery | 'seen' | 'impossible'>({ max: capacity });

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  /** @param hash identifies the text of the document. @returns undefined when graphql-js must do it; nothing has run then. */
  async execute(hash: string, execution: Execution): Promise<ExecutionResult | undefined> {
    const compiled = this.#compile(`${hash} ${execution.operationName ?? ''}`, execution);
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

  #compile(key: string, { document, operationName }: Execution): CompiledQuery | undefined {
    // To graphql-jit an empty name is none; to graphql-js, and to Apollo, it is the name of no operation.
    if (operationName === '') return undefined;
    const known = this.#compiled.get(key);
    if (known === undefined) {
      // Compiling costs more than it saves the first time, and would cost an attacker nothing.
      this.#compiled.set(key, 'seen');
      return undefined;
    }
    if (known === 'impossible') return undefined;
    if (known !== 'seen') return known;
    if (!isSuitable(document, operationName)) {
      this.#compiled.set(key, 'impossible');
      return undefined;
    }
    const compiled = compileQuery(this.#schema, document, operationName, {
      customJSONSerializer: true,
      disablingCapturingStackErrors: true,
    });
    this.#compiled.set(key, isCompiledQuery(compiled) ? compiled : 'impossible');
    return isCompiledQuery(compiled) ? compiled : undefined;
  }
}

/** Whether graphql-jit answers it as graphql-js does. */
function isSuitable(document: DocumentNode, operationName: string | undefined): boolean {
  // It assigns to aliases: one named so would not be a member.
  if (document.loc?.source.body.includes('__proto__')) return false;
  const operation = getOperationAST(document, operationName);
  if (operation?.operation !== OperationTypeNode.MUTATION) return true;
  // It runs the mutations after one that has failed, although the answer says that there is no data.
  const [first, ...others] = operation.selectionSet.selections;
  return first?.kind === Kind.FIELD && others.length === 0;
}

/** graphql-jit's errors lack what graphql-js's have, `extensions` and `toJSON` among it. */
function asGraphQLError({ message, path, locations, originalError }: GraphQLError): GraphQLError {
  return Object.assign(new GraphQLError(message, { path, originalError }), { locations });
}
