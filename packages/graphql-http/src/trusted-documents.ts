import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** The documents that may run, by hash. */
export type TrustedDocuments = ReadonlyMap<unknown, string>;

/**
 * The prefix of a document identifier that is a SHA-256 (GraphQL over HTTP,
 * draft appendix "Persisted Documents").
 */
const prefix = 'sha256:';

/**
 * Reads a manifest: a JSON object of hash -> document, as the client preset of
 * GraphQL Code Generator writes it, or of `sha256:` and hash. Every document is
 * registered by its name in the manifest and by its SHA-256, with and without
 * the prefix.
 *
 * @param setting names the file, for messages
 * @throws Error when the file cannot be read or is not a manifest
 */
export function readTrustedDocuments(
  path: string,
  setting: string,
): TrustedDocuments {
  const file = `${path} (${setting})`;
  const trusted = new Map<string, string>();
  for (const [key, document] of Object.entries(manifestIn(path, file))) {
    if (typeof document !== 'string') throw noManifest(file);
    const digest = hash('sha256', document);
    if (key.startsWith(prefix) && key !== `${prefix}${digest}`) {
      throw new Error(
        `${file} has a document under ${key} whose SHA-256 is ${digest}.`,
      );
    }
    trusted
      .set(key, document)
      .set(digest, document)
      .set(`${prefix}${digest}`, document);
  }
  return trusted;
}

function manifestIn(path: string, file: string): object {
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (
      typeof manifest === 'object' &&
      manifest !== null &&
      !Array.isArray(manifest)
    )
      return manifest;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) {
      throw new Error(`${file} cannot be read: ${(cause as Error).message}`, {
        cause,
      });
    }
  }
  throw noManifest(file);
}

function noManifest(file: string): Error {
  return new Error(
    `${file} is not a manifest: a JSON object of hash -> document.`,
  );
}
