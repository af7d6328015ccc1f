const longestPath = 256;
const unprintable = /[^\x20-\x7e]/g;

/** Makes client input safe to log: bounded, printable and without API keys. */
export class Redactor {
  readonly #prefix: string;
  readonly #issued: RegExp;
  readonly #bootstrapKey: string | undefined;

  /**
   * @param prefix the prefix of issued keys
   * @param bootstrapKey the configured key, which has no prefix
   */
  constructor(prefix: string, bootstrapKey?: string) {
    this.#prefix = prefix;
    this.#issued = new RegExp(`${prefix}\\w*`, 'g');
    this.#bootstrapKey = bootstrapKey;
  }

  hasKey(text: string): boolean {
    return text.includes(this.#prefix) || (this.#bootstrapKey !== undefined && text.includes(this.#bootstrapKey));
  }

  /** @returns at most `length` characters of printable ASCII. A text with a key is percent-decoded. */
  redact(text: string, length: number): string {
    // Examines more than it returns: a truncated key would not be recognised, and an encoded key is longer.
    const enough = text.length > length ? text.slice(0, 8 * length) : text;
    const plain = enough.includes('%') ? decode(enough) : enough;
    const safe = this.hasKey(plain) ? this.#withoutKeys(plain) : enough;
    // A terminal would interpret control characters, also those above 127.
    return (safe.length > length ? safe.slice(0, length) : safe).replace(unprintable, '?');
  }

  /** @returns at most 256 characters of a URL's path */
  redactPath(url: string): string {
    const end = url.indexOf('?');
    return this.redact(end < 0 ? url : url.slice(0, end), longestPath);
  }

  #withoutKeys(text: string): string {
    const withoutIssued = text.replaceAll(this.#issued, `${this.#prefix}...`);
    return this.#bootstrapKey ? withoutIssued.replaceAll(this.#bootstrapKey, '[key]') : withoutIssued;
  }
}

/** Decodes repeatedly percent-encoded characters, too: `%61`, `%2561`, `%252561`. */
function decode(text: string): string {
  return text.replace(/%(?:25)*([2-7][\da-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
