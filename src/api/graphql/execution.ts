import { BREAK, type ExecutionResult, execute, GraphQLError, type GraphQLSchema, Kind, visit } from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import { executionOptions } from './apollo.ts';
import { type GraphQLContext, type GraphQLOptions, isSingleField, type Operation } from './operation.ts';

/**
 * Executes with graphql-jit. It compiles an operation at its second use, because compiling costs more than one use
 * saves, and an attacker could trigger it for free. graphql-js executes operations that graphql-jit cannot compile or
 * rejects before execution.
 */
export async function executeOperation(
  operation: Operation,
  variables: Record<string, unknown>,
  contextValue: GraphQLContext,
  { schema, jit, introspection }: Pick<GraphQLOptions, 'schema' | 'jit' | 'introspection'>,
): Promise<ExecutionResult> {
  operation.uses += 1;
  if (operation.uses === 2 && jit && isSuitable(operation)) compile(schema, operation);
  const result = await operation.compiled?.(undefined, contextValue, variables);
  if (result && result.data !== undefined) {
    return result.errors ? { data: result.data, errors: result.errors.map(asGraphQLError) } : result;
  }
  // Without data, graphql-jit has rejected the variables. graphql-js accepts more of them (defaults of non-null input
  // fields, int64 as bigint), and its error messages are the standard.
  return execute({
    schema,
    document: operation.document,
    operationName: operation.name,
    contextValue,
    variableValues: variables,
    options: executionOptions,
    hideSuggestions: !introspection,
  });
}

function compile(schema: GraphQLSchema, operation: Operation): void {
  const compiled = compileQuery(schema, operation.document, operation.name, { disablingCapturingStackErrors: true });
  if (isCompiledQuery(compiled)) operation.compiled = compiled.query;
}

/**
 * True when graphql-jit returns the same as graphql-js (`test/deep/graphql/compiled.test.ts` compares them).
 *
 * - Where conditions meet fragments, it returns wrong data: a fragment counts as visited after its first spread, even a
 *   conditional one, and a field in a fragment loses the condition of its parent
 *   (https://github.com/zalando-incubator/graphql-jit/issues/111). Executable documents have no other directives.
 * - It assigns to aliases: an alias `__proto__` would not become a member.
 * - Introspection blocks the process ten times as long when it is compiled.
 * - From a variable inside an input object it accepts null, even for a field that has a default and cannot be null
 *   (https://github.com/zalando-incubator/graphql-jit/issues/230).
 * - It runs the mutations after a failed one, although the response says that there is no data.
 *
 * A document with several operations is interpreted, because the number of its compiled functions would be unbounded:
 * two kilobytes can contain a hundred operations.
 */
export function isSuitable({ document, type, node, hasDirectives }: Operation): boolean {
  if (hasDirectives || /__proto__|__(?:schema|type)\b/.test(document.loc?.source.body ?? '')) return false;
  if (document.definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION).length > 1) return false;
  if (type === 'mutation' && !isSingleField(node)) return false;
  let isPlain = true;
  visit(document, {
    ObjectField({ value }) {
      if (value.kind !== Kind.VARIABLE) return undefined;
      isPlain = false;
      return BREAK;
    },
  });
  return isPlain;
}

/**
 * graphql-jit's errors lack parts of graphql-js's, for example `extensions` and `toJSON`
 * (https://github.com/zalando-incubator/graphql-jit/issues/234).
 */
function asGraphQLError({ message, path, locations, originalError }: GraphQLError): GraphQLError {
  return Object.assign(new GraphQLError(message, { path, originalError }), { locations });
}
