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
  addresses({ config: { guides }, values }) {
    const addresses = guides ? ['/', '/guide', '/docs'] : ['/', '/docs'];
    if (values.EXPLORER) addresses.push('/graphiql', '/graphql');
    return addresses;
  },
  async start({ config, values }) {
    const { servePages } = await import('./pages.ts');
    return { http: (app) => servePages(app, config, values.EXPLORER) };
  },
});
