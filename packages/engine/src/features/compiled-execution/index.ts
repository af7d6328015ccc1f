import { flag } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

/** Compiles GraphQL operations that are used again. */
export const compiledExecution = feature({
  name: 'compiled-execution',
  variables: {
    GRAPHQL_JIT: flag(
      true,
      'Compiles operations at their second use; `false` rules out a fault of the compiler.',
    ),
  },
  async start({ values }) {
    if (!values.GRAPHQL_JIT) return undefined;
    const { compiler } = await import('./compiler.ts');
    return { graphql: { executor: compiler } };
  },
});
