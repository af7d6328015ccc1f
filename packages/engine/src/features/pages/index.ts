import { flag } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

/** Pages for a browser: the front page, guides, the reference, explorers. */
export const pages = feature({
  name: 'pages',
  variables: {
    EXPLORER: flag(
      true,
      'Serves Apollo Sandbox at `/graphql` and GraphiQL at `/graphiql` (decisions.md).',
    ),
  },
  addresses({ EXPLORER: hasExplorers }) {
    const addresses = ['/', '/guide', '/docs'];
    if (hasExplorers) addresses.push('/graphiql', '/graphql');
    return addresses;
  },
  async start({ config, values }) {
    const { servePages } = await import('./pages.ts');
    return { http: (app) => servePages(app, config.version, values.EXPLORER) };
  },
});
