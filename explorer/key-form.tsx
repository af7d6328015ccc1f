import type { FormEvent } from 'react';

interface Props {
  current: string;
  onChange(key: string): void;
}

/** Where a user gives the API key, and takes it back. */
export function KeyForm({ current, onChange }: Props) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onChange(`${new FormData(event.currentTarget).get('key')}`.trim());
  };
  return (
    <form onSubmit={submit}>
      <label htmlFor="key">API key</label>
      {/* Not autocompleted: browsers would keep it with their passwords. */}
      <input key={current} id="key" name="key" type="password" autoComplete="off" defaultValue={current} required />
      <button type="submit">Use key</button>
      {current && (
        <button type="button" onClick={() => onChange('')}>
          Forget key
        </button>
      )}
    </form>
  );
}
