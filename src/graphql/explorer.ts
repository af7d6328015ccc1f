import { ApolloServerPluginLandingPageLocalDefault } from '@apollo/server/plugin/landingPage/default';

/**
 * The Apollo Sandbox page for this endpoint, with an `Authorization` header to fill in. It loads Apollo's scripts.
 *
 * @returns a function that renders it: every response has its own nonce (Content Security Policy Level 3, section 7.1).
 */
export async function explorerPage(document: string): Promise<() => Promise<string>> {
  const plugin = ApolloServerPluginLandingPageLocalDefault({
    document,
    // Not `sharedHeaders`: users cannot edit those, and Sandbox introspects with them.
    headers: { Authorization: 'Bearer <API_KEY>' },
    embed: { runTelemetry: false, initialState: { pollForSchemaUpdates: false } },
    footer: false,
  });
  const listener = await plugin.serverWillStart?.({} as never);
  const page = await listener?.renderLandingPage?.();
  return async () => (typeof page?.html === 'function' ? page.html() : (page?.html ?? ''));
}
