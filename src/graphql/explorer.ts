import { ApolloServerPluginLandingPageLocalDefault } from '@apollo/server/plugin/landingPage/default';
import type { FastifyRequest } from 'fastify';
import { isRead } from './http.ts';

const firstDocument = `query Pets {
  pets(limit: 5) {
    id
    name
    categoryId
    status
  }
}
`;

/**
 * The Apollo Sandbox page, with this endpoint and an `Authorization` header to fill in. The page loads Apollo's scripts.
 *
 * @returns what renders it: every response has a nonce of its own (Content Security Policy Level 3, section 7.1).
 */
export async function explorerPage(): Promise<() => Promise<string>> {
  const plugin = ApolloServerPluginLandingPageLocalDefault({
    document: firstDocument,
    // Not `sharedHeaders`: users cannot edit those, and Sandbox introspects with them.
    headers: { Authorization: 'Bearer <API_KEY>' },
    embed: { runTelemetry: false, initialState: { pollForSchemaUpdates: false } },
    footer: false,
  });
  const listener = await plugin.serverWillStart?.({} as never);
  const page = await listener?.renderLandingPage?.();
  return async () => (typeof page?.html === 'function' ? page.html() : (page?.html ?? ''));
}

/** A browser's navigation: it gets the page whether or not it has a key. */
export function isNavigation({ method, headers }: FastifyRequest): boolean {
  return isRead(method) && !headers.authorization && /^text\/html\b/.test(headers.accept ?? '');
}
