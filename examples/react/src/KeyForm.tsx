interface KeyFormProps {
  onKey(key: string): void;
}

export function KeyForm({ onKey }: KeyFormProps) {
  return (
    <form
      className="card"
      action={(fields) => onKey(String(fields.get('key')).trim())}
    >
      <label>
        API key
        <input
          name="key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          pattern="\s*[!-~]+\s*"
          title="Letters, digits and signs of ASCII"
          required
        />
      </label>
      <p className="hint">
        The first start of the service prints one. It stays in this tab until
        you close it.
      </p>
      <button type="submit">Open the store</button>
    </form>
  );
}
