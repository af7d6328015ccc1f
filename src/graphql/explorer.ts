import { ApolloServerPluginLandingPageLocalDefault } from '@apollo/server/plugin/landingPage/default';
import type { FastifyRequest } from 'fastify';

const firstDocument = `query Pets {
  pets(limit: 5) {
    id
    name
    categoryId
    status
  }
}
`;

/** The Apollo Sandbox page, with this endpoint and the `Authorization` header prepared. The page loads Apollo's scripts. */
export async function explorerPage(): Promise<string> {
  const plugin = ApolloServerPluginLandingPageLocalDefault({
    document: firstDocument,
    embed: { runTelemetry: false, initialState: { sharedHeaders: { Authorization: 'Bearer <API_KEY>' } } },
    footer: false,
  });
  const listener = await plugin.serverWillStart?.({} as never);
  const page = await listener?.renderLandingPage?.();
  return typeof page?.html === 'function' ? page.html() : (page?.html ?? '');
}

/** A browser's navigation: it gets the page whether or not it has a key. */
export function isNavigation({ method, headers }: FastifyRequest): boolean {
  return method === 'GET' && !headers.authorization && /^text\/html\b/.test(headers.accept ?? '');
}
