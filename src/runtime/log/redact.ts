const longestPath = 256;
const unprintable = /[^\x20-\x7e]/g;

/** Prepares what clients send for the log: bounded, printable, and without the API keys that get there by mistake. */
export class Redactor {
  readonly #prefix: string;
  readonly #issued: RegExp;
  readonly #bootstrapKey: string | undefined;

  /**
   * @param prefix how issued keys begin
   * @param bootstrapKey the key from the configuration: an operator made it up, so nothing marks it as a key
   */
  constructor(prefix: string, bootstrapKey?: string) {
    this.#prefix = prefix;
    this.#issued = new RegExp(`${prefix}\\w*`, 'g');
    this.#bootstrapKey = bootstrapKey;
  }

  hasKey(text: string): boolean {
    return text.includes(this.#prefix) || (this.#bootstrapKey !== undefined && text.includes(this.#bootstrapKey));
  }

  /** @returns at most `length` characters of printable ASCII. A text with a key, percent-encoded or not, is decoded. */
  redact(text: string, length: number): string {
    // More than is shown: a key that is cut in two would not be recognised, and an encoded one is longer.
    const enough = text.length > length ? text.slice(0, 8 * length) : text;
    const plain = enough.includes('%') ? decode(enough) : enough;
    const safe = this.hasKey(plain) ? this.#withoutKeys(plain) : enough;
    // A terminal obeys control characters, and those from 128 on, too.
    return (safe.length > length ? safe.slice(0, length) : safe).replace(unprintable, '?');
  }

  /** The path of a URL, of at most 256 characters. */
  redactPath(url: string): string {
    const end = url.indexOf('?');
    return this.redact(end < 0 ? url : url.slice(0, end), longestPath);
  }

  #withoutKeys(text: string): string {
    const withoutIssued = text.replaceAll(this.#issued, `${this.#prefix}...`);
    return this.#bootstrapKey ? withoutIssued.replaceAll(this.#bootstrapKey, '[key]') : withoutIssued;
  }
}

/** Decodes printable characters, however often they are percent-encoded: `%61`, `%2561`, `%252561`. */
function decode(text: string): string {
  return text.replace(/%(?:25)*([2-7][\da-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
