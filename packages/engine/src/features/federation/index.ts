import { flag } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

/** Makes the schema a subgraph of Apollo Federation 2. */
export const federation = feature({
  name: 'federation',
  variables: {
    GRAPHQL_FEDERATION: flag(
      false,
      'Makes the schema a subgraph of Apollo Federation 2 (graphql.md).',
    ),
  },
  async start({ config, values }) {
    if (!values.GRAPHQL_FEDERATION) return undefined;
    const { subgraph } = await import('./subgraph.ts');
    const { introspection } = config.graphql;
    return {
      graphql: {
        schema: (schema, shared, references) =>
          subgraph(schema, shared, references, introspection),
      },
    };
  },
});
