/** Of a URL's path, in characters. */
const longestPath = 256;
const unprintable = /[^\x20-\x7e]/g;

/** Makes client input safe to log: bounded, printable and without secrets. */
export class Redactor {
  /**
   * @param issuedPattern finds issued secrets, also truncated ones: a global
   *   expression. Their first four characters are shown
   * @param configured a secret of another form
   */
  constructor(
    private readonly issuedPattern: RegExp,
    private readonly configured?: string,
  ) {}

  hasSecret(text: string) {
    return (
      text.search(this.issuedPattern) >= 0 ||
      (this.configured !== undefined && text.includes(this.configured))
    );
  }

  /**
   * @returns at most `length` characters of printable ASCII. A text with a
   *   secret is percent-decoded.
   */
  redact(text: string, length: number) {
    // Examines more than it returns: a truncated secret would not be
    // recognised, and an encoded one is longer.
    const examined = text.slice(0, 8 * length);
    const plain = examined.includes('%') ? decode(examined) : examined;
    const hasSecret = this.hasSecret(plain);
    const safe = hasSecret ? this.withoutSecrets(plain) : examined;
    // A terminal would interpret control characters, also those above 127.
    return safe.slice(0, length).replace(unprintable, '?');
  }

  /** @returns at most 256 characters of a URL's path */
  redactPath(url: string) {
    // A router may treat `#`, which no valid request has, like `?`.
    const [path = ''] = url.split(/[?#]/, 1);
    return this.redact(path, longestPath);
  }

  /** @returns the text; of each secret its first four characters, or `[key]` */
  withoutSecrets(text: string) {
    const safe = text.replaceAll(
      this.issuedPattern,
      (secret) => `${secret.slice(0, 4)}...`,
    );
    if (!this.configured) return safe;
    return safe.replaceAll(this.configured, '[key]');
  }
}

/**
 * Decodes repeatedly percent-encoded characters, too: `%61`, `%2561`,
 * `%252561`.
 */
function decode(text: string) {
  return text.replace(/%(?:25)*([2-7][\da-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
