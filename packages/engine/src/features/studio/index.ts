import type { ApolloServerPlugin } from '@apollo/server';
import type { GraphQLContext } from '../../api/graphql/context.ts';
import { secretText, text } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

/** `studio` with plugins of Apollo Server. */
export const studioWith = (
  ...own: readonly ApolloServerPlugin<GraphQLContext>[]
) =>
  feature({
    name: 'studio',
    variables: {
      APOLLO_PLUGINS: text(
        undefined,
        'Module whose default export is plugins of Apollo Server (graphql.md).',
      ),
      APOLLO_KEY: secretText(
        undefined,
        'Key of Apollo GraphOS: reports usage, with APOLLO_GRAPH_REF (sandbox.md).',
      ),
      APOLLO_GRAPH_REF: text(
        undefined,
        'The graph in GraphOS: `graph@variant` (sandbox.md).',
      ),
    },
    async start({ values }) {
      const { APOLLO_PLUGINS: path, APOLLO_KEY: key } = values;
      if (own.length === 0 && !path && key === undefined) return undefined;
      const { answerWithPlugins, pluginsIn } = await import('./plugins.ts');
      const plugins = path ? await pluginsIn(path) : [];
      const apollo = { key, graphRef: values.APOLLO_GRAPH_REF };
      const answer = answerWithPlugins([...own, ...plugins], apollo);
      return { graphql: { answer } };
    },
  });

/** Apollo Server executes, so that its plugins and GraphOS see operations. */
export const studio = studioWith();
