import { useQuery } from '@apollo/client/react';
import { useState } from 'react';
import { Failure } from './Failure.tsx';
import type { PetStatus } from './generated/graphql.ts';
import { graphql } from './generated/index.ts';
import { hasLogin } from './login.ts';
import { NewAnimals } from './NewAnimals.tsx';
import { NewPetForm } from './NewPetForm.tsx';
import { PetRow } from './PetRow.tsx';
import { StatusFilter } from './StatusFilter.tsx';

const PetPage = graphql(`
  query PetPage($status: PetStatus, $after: String) {
    petsConnection(status: $status, first: 20, after: $after) {
      edges {
        node {
          id
          ...PetRow
        }
      }
      pageInfo {
        endCursor
        hasNextPage
      }
    }
  }
`);

export function Pets() {
  const [status, setStatus] = useState<PetStatus | null>(null);
  const { data, error, loading, fetchMore, refetch } = useQuery(PetPage, {
    variables: { status },
    // Shows the cached list immediately, and reads it again, because it may
    // have grown.
    fetchPolicy: 'cache-and-network',
    nextFetchPolicy: 'cache-first',
    notifyOnNetworkStatusChange: true,
  });
  const { edges = [], pageInfo } = data?.petsConnection ?? {};
  /**
   * The last animal of the first complete list: the live list begins behind it.
   */
  const [start, setStart] = useState<string>();
  if (hasLogin && start === undefined && pageInfo?.hasNextPage === false)
    setStart(pageInfo.endCursor ?? '0');

  /** Reads the animals after the last one: the next page, or new animals. */
  async function more() {
    const after = pageInfo?.endCursor;
    await (after ? fetchMore({ variables: { after } }) : refetch()).catch(
      () => {},
    );
  }

  return (
    <>
      {start && <NewAnimals after={start} />}
      <NewPetForm onCreated={() => pageInfo?.hasNextPage || more()} />
      <section className="card" aria-label="The list" aria-busy={loading}>
        <StatusFilter status={status} onStatus={setStatus} />
        <Failure error={error} />
        <ol>
          {edges.map(({ node }) => (
            <PetRow key={node.id} pet={node} />
          ))}
        </ol>
        {!loading && !error && edges.length === 0 && (
          <p className="hint">No animals here yet.</p>
        )}
        {pageInfo?.hasNextPage && (
          <button
            type="button"
            className="quiet"
            disabled={loading}
            onClick={more}
          >
            More
          </button>
        )}
      </section>
    </>
  );
}
