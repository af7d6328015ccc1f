import type { ApiKeyService, IssuedKey } from './api-key.service.ts';

/** Issues the first key of a new store. @returns undefined when keys exist already. */
export async function issueFirstKey(keys: ApiKeyService): Promise<IssuedKey | undefined> {
  if ((await keys.list()).length > 0) return undefined;
  return keys.issue({ name: 'first key' });
}

/** The message for a new user, with commands to paste into a shell. */
export function welcome(address: string, key: string): string {
  return `
The animal store is open at ${address}. This is its first API key; it is shown only now:

  ${key}

Try it:

  curl -H 'Authorization: Bearer ${key}' ${address}/v1/pets

  curl -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"name":"Rex","categoryId":5}' ${address}/v1/pets

  curl -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"query":"{ pets(limit: 5) { id name categoryId status } }"}' ${address}/graphql

Explore:  ${address} (all there is)   ${address}/graphiql (GraphiQL)   ${address}/docs (REST reference)

`;
}
