/** How issued keys begin (src/access/keys/secret.ts); a test holds the two together. */
const secretPrefix = 'ask_';
const issuedKeys = new RegExp(`${secretPrefix}\\w*`, 'g');
const longestPath = 256;
const unprintable = /[^\x20-\x7e]/g;

/** Prepares what clients send for the log: bounded, printable, and without the API keys that get there by mistake. */
export class KeyMask {
  readonly #bootstrapKey: string | undefined;

  /** @param bootstrapKey the key from the configuration: an operator made it up, so nothing marks it as a key */
  constructor(bootstrapKey?: string) {
    this.#bootstrapKey = bootstrapKey;
  }

  hasKey(text: string): boolean {
    return text.includes(secretPrefix) || (this.#bootstrapKey !== undefined && text.includes(this.#bootstrapKey));
  }

  /** @returns at most `length` characters, of printable ASCII. A text with a key, percent-encoded or not, is decoded. */
  clean(text: string, length: number): string {
    // Longer than what is shown: a key that is cut in two would not be recognised, and an encoded one is longer.
    const enough = text.length > length ? text.slice(0, 8 * length) : text;
    const plain = enough.includes('%') ? decoded(enough) : enough;
    const safe = this.hasKey(plain) ? this.#masked(plain) : enough;
    // A terminal obeys control characters, those from 128 on, too.
    return (safe.length > length ? safe.slice(0, length) : safe).replace(unprintable, '?');
  }

  /** The path of a URL, of at most 256 characters. */
  cleanPath(url: string): string {
    const end = url.indexOf('?');
    return this.clean(end < 0 ? url : url.slice(0, end), longestPath);
  }

  #masked(text: string): string {
    const withoutIssued = text.replaceAll(issuedKeys, `${secretPrefix}...`);
    return this.#bootstrapKey ? withoutIssued.replaceAll(this.#bootstrapKey, '[key]') : withoutIssued;
  }
}

/** Printable characters that are percent-encoded, however often: `%61`, `%2561`, `%252561`. */
function decoded(text: string): string {
  return text.replace(/%(?:25)*([2-7][\da-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
