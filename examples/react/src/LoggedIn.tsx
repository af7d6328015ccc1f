import { ApolloProvider } from '@apollo/client/react';
import { use, useMemo } from 'react';
import { storeClient } from './client.ts';
import { isLoggedIn, logIn, logOut } from './login.ts';
import { Pets } from './Pets.tsx';

/** A code can be used once, so it is read before the first rendering. */
const loggedIn = isLoggedIn();

/** The store for users of an identity provider. */
export function LoggedIn() {
  const isUser = use(loggedIn);
  const client = useMemo(() => storeClient(), []);
  return (
    <>
      <header>
        <h1>Animals</h1>
        {isUser && (
          <button type="button" className="quiet" onClick={logOut}>
            Log out
          </button>
        )}
      </header>
      <main>
        {isUser ? (
          <ApolloProvider client={client}>
            <Pets />
          </ApolloProvider>
        ) : (
          <button type="button" onClick={logIn}>
            Log in
          </button>
        )}
      </main>
    </>
  );
}
