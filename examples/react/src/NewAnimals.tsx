import { useSubscription } from '@apollo/client/react';
import { useState } from 'react';
import { Failure } from './Failure.tsx';
import { graphql } from './generated/index.ts';

const NewAnimal = graphql(`
  subscription NewAnimal($after: ID) {
    petAdded(after: $after) {
      id
      name
    }
  }
`);

/** A live list: the animals after this one that are added while it is shown. */
export function NewAnimals({ after }: { after: string }) {
  const [names, setNames] = useState<string[]>([]);
  const { error } = useSubscription(NewAnimal, {
    variables: { after },
    onData: ({ data }) =>
      setNames((before) => [...before, String(data.data?.petAdded.name)]),
  });
  return (
    <section className="card" aria-label="New animals">
      <h2>New animals</h2>
      <Failure error={error} />
      <p role="log">{names.join(', ') || 'None yet.'}</p>
    </section>
  );
}
