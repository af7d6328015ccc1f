import { useMutation } from '@apollo/client/react';
import { useRef } from 'react';
import { Failure } from './Failure.tsx';
import { graphql } from './generated/index.ts';

const AddPet = graphql(`
  mutation AddPet($input: NewPet!) {
    createPet(input: $input) {
      ...PetRow
    }
  }
`);

interface NewPetFormProps {
  onCreated(): void;
}

export function NewPetForm({ onCreated }: NewPetFormProps) {
  const [addPet, { data, error, loading }] = useMutation(AddPet);
  const form = useRef<HTMLFormElement>(null);
  const attempt = useRef({ text: '', key: '' });

  /**
   * An animal keeps its key until the creation succeeds, so that pressing the
   * button again does not add it twice.
   */
  async function submit(fields: FormData) {
    const input = {
      name: String(fields.get('name')),
      categoryId: String(fields.get('categoryId')),
    };
    const text = JSON.stringify(input);
    if (attempt.current.text !== text)
      attempt.current = { text, key: newKey() };
    const headers = { 'idempotency-key': attempt.current.key };
    await addPet({ variables: { input }, context: { headers } });
    attempt.current = { text: '', key: '' };
    form.current?.reset();
    onCreated();
  }

  return (
    <form
      ref={form}
      className="card row"
      onSubmit={(event) => {
        event.preventDefault();
        // `error` shows the failure.
        submit(new FormData(event.currentTarget)).catch(() => {});
      }}
    >
      <label>
        Name
        <input name="name" autoComplete="off" required />
      </label>
      <label>
        Category
        <input
          name="categoryId"
          inputMode="numeric"
          pattern="-?[0-9]{1,19}"
          title="A whole number"
          required
        />
      </label>
      <button type="submit" disabled={loading}>
        Add
      </button>
      <output>
        {data &&
          `${data.createPet.name} was added with the id ${data.createPet.id}.`}
      </output>
      <Failure error={error} />
    </form>
  );
}

/**
 * Not `crypto.randomUUID`, which browsers offer only over HTTPS and on
 * localhost.
 */
const newKey = () => crypto.getRandomValues(new Uint32Array(4)).join('-');
