import { GraphQLError, type GraphQLSchema, Kind, visit } from 'graphql';
import type { CompiledQuery } from 'graphql-jit';
import type { Executor, Operation } from '../../api/graphql/document.ts';

/**
 * Executes with graphql-jit. It compiles an operation at its second use,
 * because compiling costs more than one use saves, and an attacker could
 * trigger it for free. graphql-js interprets operations that graphql-jit cannot
 * compile or rejects before execution.
 */
export function compiler(
  schema: GraphQLSchema,
  interpreter: Executor,
): Executor {
  return (operation) => {
    const interpret = interpreter(operation);
    if (!isSuitable(operation)) return interpret;
    let uses = 0;
    let compiled: CompiledQuery['query'] | undefined;
    // How often graphql-jit has accepted variables (10 to 100) less how often
    // not. Below zero the operation is interpreted, because both would check
    // them.
    let accepted = 10;
    return async (variables, context) => {
      uses += 1;
      if (uses === 2) compiled = await compiledQuery(schema, operation);
      if (!compiled || accepted < 0) return interpret(variables, context);
      const result = await compiled(undefined, context, variables);
      const { data, errors } = result;
      if (data !== undefined) {
        accepted = Math.min(100, accepted + 1);
        if (!errors) return result;
        return { data, errors: errors.map(completedError) };
      }
      accepted -= 1;
      // Without data, graphql-jit has rejected the variables. graphql-js
      // accepts more of them (defaults of non-null input fields, int64 as
      // bigint), and its error messages are the standard.
      return interpret(variables, context);
    };
  };
}

async function compiledQuery(
  schema: GraphQLSchema,
  { document, name }: Operation,
) {
  const { compileQuery, isCompiledQuery } = await import('graphql-jit');
  const compiled = compileQuery(schema, document, name, {
    disablingCapturingStackErrors: true,
  });
  return isCompiledQuery(compiled) ? compiled.query : undefined;
}

/**
 * True when graphql-jit returns the same as graphql-js
 * (`compiled.test.ts` compares them).
 *
 * - Where conditions meet fragments, it returns wrong data: a fragment counts
 *   as visited after its first spread, even a conditional one, and a field in a
 *   fragment loses the condition of its parent
 *   (https://github.com/zalando-incubator/graphql-jit/issues/111). Executable
 *   documents have no other directives.
 * - It assigns to aliases: an alias `__proto__` would not become a member.
 * - Introspection blocks the process ten times as long when it is compiled.
 * - From a variable inside an input object it accepts null, even for a field
 *   that has a default and cannot be null
 *   (https://github.com/zalando-incubator/graphql-jit/issues/230).
 * - It runs the mutations after a failed one, although the response says that
 *   there is no data.
 *
 * A document with several operations is interpreted, because the number of its
 * compiled functions would be unbounded: two kilobytes can contain a hundred
 * operations.
 */
export function isSuitable({
  document,
  type,
  isSeries,
  hasDirectives,
}: Operation) {
  const { definitions, loc } = document;
  const operations = definitions.filter(
    ({ kind }) => kind === Kind.OPERATION_DEFINITION,
  );
  const hasTrap = /__proto__|__(?:schema|type)\b/.test(loc?.source.body ?? '');
  const isRefused = isSeries || hasDirectives || hasTrap;
  if (isRefused || operations.length > 1) return false;
  if (type === 'subscription') return false;
  let isPlain = true;
  visit(document, {
    ObjectField({ value }) {
      if (value.kind === Kind.VARIABLE) isPlain = false;
    },
  });
  return isPlain;
}

/**
 * graphql-jit's errors lack parts of graphql-js's, for example `extensions` and
 * `toJSON` (https://github.com/zalando-incubator/graphql-jit/issues/234).
 */
function completedError({
  message,
  path,
  locations,
  originalError,
}: GraphQLError): GraphQLError {
  return Object.assign(new GraphQLError(message, { path, originalError }), {
    locations,
  });
}
