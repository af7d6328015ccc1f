import { ApolloProvider } from '@apollo/client/react';
import { useMemo, useState } from 'react';
import { storeClient } from './client.ts';
import { KeyForm } from './KeyForm.tsx';
import { Pets } from './Pets.tsx';

/** The key's name in sessionStorage, which lasts until the tab is closed. */
const item = 'animal-store-key';

export function App() {
  const [key, setKey] = useState(() => sessionStorage.getItem(item) ?? '');
  const client = useMemo(() => storeClient(key), [key]);

  function remember(given: string) {
    if (given) sessionStorage.setItem(item, given);
    else sessionStorage.removeItem(item);
    setKey(given);
  }

  return (
    <>
      <header>
        <h1>Animals</h1>
        {key && (
          <button type="button" className="quiet" onClick={() => remember('')}>
            Forget the key
          </button>
        )}
      </header>
      <main>
        {key ? (
          <ApolloProvider client={client}>
            <Pets />
          </ApolloProvider>
        ) : (
          <KeyForm onKey={remember} />
        )}
      </main>
    </>
  );
}
