import type { FormEvent } from 'react';

interface Props {
  current: string;
  onChange(key: string): void;
}

/** A form to enter and to forget the API key. */
export function KeyForm({ current, onChange }: Props) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onChange(`${new FormData(event.currentTarget).get('key')}`.trim());
  };
  return (
    <form onSubmit={submit}>
      <label htmlFor="key">API key</label>
      {/* No autocompletion, because browsers would store the key as a password. */}
      <input
        key={current}
        id="key"
        name="key"
        type="password"
        autoComplete="off"
        defaultValue={current}
        required
      />
      <button type="submit">Use key</button>
      {current && (
        <button type="button" onClick={() => onChange('')}>
          Forget key
        </button>
      )}
    </form>
  );
}
