import { UserManager } from 'oidc-client-ts';

/**
 * The identity provider (docs/frontends.md). Without VITE_ISSUER the page asks
 * for a key.
 */
const {
  VITE_ISSUER: authority,
  VITE_CLIENT_ID: client_id = 'shop',
  VITE_AUDIENCE: resource,
} = import.meta.env;
const page = `${location.origin}/`;

/**
 * Logs in by the authorization code flow with PKCE. The tokens stay in the
 * tab's `sessionStorage`.
 */
const users = authority
  ? new UserManager({
      authority,
      client_id,
      resource,
      redirect_uri: page,
      post_logout_redirect_uri: page,
      scope: 'openid pets:read pets:write',
      // `token` renews: a timer would be late after the computer slept.
      automaticSilentRenew: false,
    })
  : undefined;

export const hasLogin = Boolean(users);

/**
 * Ends a login when the provider has sent the user back. @returns whether a
 * user is logged in
 */
export async function isLoggedIn(): Promise<boolean> {
  if (!users) return false;
  if (new URLSearchParams(location.search).has('code')) {
    await users.signinCallback().catch(console.error);
    history.replaceState({}, '', '/');
  }
  return (await users.getUser()) !== null;
}

export const logIn = () => users?.signinRedirect();
export const logOut = () => users?.signoutRedirect();

let renewal: Promise<unknown> | undefined;

/**
 * Gets a new token, once for all that ask: a refresh token can be used once.
 */
export async function renew(): Promise<void> {
  renewal ??= Promise.resolve(users?.signinSilent()).finally(() => {
    renewal = undefined;
  });
  await renewal;
}

/** The token for a request. */
export async function token(): Promise<string> {
  if ((await users?.getUser())?.expired) await renew();
  return (await users?.getUser())?.access_token ?? '';
}
