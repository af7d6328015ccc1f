import {
  Client,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { databaseForAll } from '../../../support/fixtures.ts';
import { send } from '../../../support/http.ts';
import { afterAll, beforeAll, expect, test } from '../../../support/jest.ts';
import {
  freePort,
  type ServerProcess,
  startServer,
} from '../../../support/process.ts';
import { LoginProvider } from './login-provider.ts';

/**
 * Assistants that log in: the official client of the Model Context Protocol,
 * and a certified identity provider.
 */

const database = databaseForAll();
const provider = new LoginProvider();
const redirectUrl = 'http://127.0.0.1/callback';
let server: ServerProcess;
let mcp: string;
beforeAll(async () => {
  await provider.open();
  const port = await freePort();
  mcp = `http://127.0.0.1:${port}/mcp`;
  provider.resources.push(mcp, 'https://other.example/mcp');
  const names = 'pets:read=read,pets:write=write';
  const tokens = {
    JWT_ISSUER: provider.issuer,
    JWT_AUDIENCE: mcp,
    JWT_SCOPES: names,
  };
  server = await startServer({
    ...database.env,
    ...tokens,
    PORT: `${port}`,
    MCP: 'true',
  });
});
afterAll(() => provider.close());

/** An assistant without a key. */
class Assistant implements OAuthClientProvider {
  readonly redirectUrl = redirectUrl;
  readonly clientMetadata = {
    redirect_uris: [redirectUrl],
    application_type: 'native',
    token_endpoint_auth_method: 'none',
  };
  authorization: URL | undefined;
  readonly #kept = new Map<string, any>();

  /**
   * @param resource asks for a token for this one, whatever the service says
   */
  constructor(resource?: string) {
    // Without it, the client compares the service's `resource` with the address
    // by itself.
    if (resource) this.validateResourceURL = async () => new URL(resource);
  }

  validateResourceURL?: () => Promise<URL>;

  clientInformation = () => this.#kept.get('client');
  saveClientInformation = (client: unknown) =>
    void this.#kept.set('client', client);
  tokens = () => this.#kept.get('tokens');
  saveTokens = (tokens: unknown) => void this.#kept.set('tokens', tokens);
  redirectToAuthorization = (url: URL) => {
    this.authorization = url;
  };
  saveCodeVerifier = (verifier: string) =>
    void this.#kept.set('verifier', verifier);
  saveDiscoveryState = (state: unknown) => void this.#kept.set('state', state);
  discoveryState = () => this.#kept.get('state');
  codeVerifier = () => this.#kept.get('verifier');
}

async function logIn(assistant: Assistant): Promise<Client> {
  const transport = () =>
    new StreamableHTTPClientTransport(new URL(mcp), {
      authProvider: assistant,
    });
  const client = new Client({ name: 'test', version: '1' });
  const first = transport();
  await expect(client.connect(first)).rejects.toThrow(/Unauthorized/i);
  await first.finishAuth(
    await provider.logIn(assistant.authorization as URL, redirectUrl),
  );
  await client.connect(transport());
  return client;
}

test('a client with nothing but the address finds the provider, logs in there, and uses the tools as its user', async () => {
  const assistant = new Assistant();
  const client = await logIn(assistant);
  // RFC 8707: the provider is asked for a token for this service, and no other.
  const asked = assistant.authorization?.searchParams;
  expect([asked?.get('resource'), asked?.get('scope')]).toEqual([
    mcp,
    'pets:read pets:write',
  ]);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([
    'list_pets',
    'create_pet',
  ]);
  const rex = { name: 'Rex', categoryId: '9007199254740993' };
  const { structuredContent } = await client.callTool({
    name: 'create_pet',
    arguments: rex,
  });
  expect(structuredContent).toEqual({
    id: expect.any(String),
    ...rex,
    status: 'available',
  });
  await client.close();
});

test('a token that the same provider has issued for another resource is refused', async () => {
  const assistant = new Assistant('https://other.example/mcp');
  await expect(logIn(assistant)).rejects.toThrow();
  const authorization = `Bearer ${assistant.tokens().access_token}`;
  const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
  const headers = { authorization, 'content-type': 'application/json' };
  const refused = await send(server.origin, {
    method: 'POST',
    path: '/mcp',
    body,
    headers,
  });
  const message = expect.stringContaining('"aud"');
  expect([refused.status, JSON.parse(refused.text)]).toEqual([
    401,
    { code: 'UNAUTHENTICATED', message, status: 401 },
  ]);
  expect(refused.headers['www-authenticate']).toBe(
    `Bearer error="invalid_token", resource_metadata="${server.origin}/.well-known/oauth-protected-resource"`,
  );
});
