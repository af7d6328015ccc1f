import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { RequestError } from './request-error.ts';

/** The parameters of a request that name its document. */
export interface DocumentParameters {
  query?: string | undefined;
  documentId?: unknown;
  extensions?: Record<string, unknown> | undefined;
}

/** The documents that may run, by hash. */
export type TrustedDocuments = ReadonlyMap<unknown, string>;

/** The prefix of a document identifier that is a SHA-256 (GraphQL over HTTP, draft appendix "Persisted Documents"). */
const prefix = 'sha256:';

/**
 * Reads a manifest: a JSON object of hash -> document, as the client preset of GraphQL Code Generator writes it, or of
 * `sha256:` and hash. Every document is registered by its name in the manifest and by its SHA-256, with and without the
 * prefix.
 *
 * @param setting names the file, for messages
 * @throws Error when the file cannot be read or is not a manifest
 */
export function readTrustedDocuments(path: string, setting: string): TrustedDocuments {
  const file = `${path} (${setting})`;
  const trusted = new Map<string, string>();
  for (const [key, document] of Object.entries(manifestIn(path, file))) {
    if (typeof document !== 'string') throw noManifest(file);
    const digest = hash('sha256', document);
    if (key.startsWith(prefix) && key !== `${prefix}${digest}`) {
      throw new Error(`${file} has a document under ${key} whose SHA-256 is ${digest}.`);
    }
    trusted.set(key, document).set(digest, document).set(`${prefix}${digest}`, document);
  }
  return trusted;
}

function manifestIn(path: string, file: string): object {
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof manifest === 'object' && manifest !== null && !Array.isArray(manifest)) return manifest;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) {
      throw new Error(`${file} cannot be read: ${(cause as Error).message}`, { cause });
    }
  }
  throw noManifest(file);
}

function noManifest(file: string): Error {
  return new Error(`${file} is not a manifest: a JSON object of hash -> document.`);
}

/**
 * Finds the trusted document that a request names: by hash (`documentId`, with or without `sha256:`, or
 * `extensions.persistedQuery.sha256Hash` as Apollo's clients send it), or as its exact text. A text and a `documentId`
 * must be the same document.
 *
 * @throws RequestError OPERATION_NOT_TRUSTED
 */
export function trustedDocument(
  trusted: TrustedDocuments,
  { query, documentId, extensions }: DocumentParameters,
): string {
  const { sha256Hash } = (extensions?.persistedQuery ?? {}) as { sha256Hash?: unknown };
  const document = trusted.get(query === undefined ? (documentId ?? sha256Hash) : hash('sha256', query));
  if (document === undefined) throw notTrusted('Only operations that were registered beforehand are run here.');
  if (query !== undefined && documentId !== undefined && trusted.get(documentId) !== document) {
    throw notTrusted('`query` and `documentId` are different documents: send one of them.');
  }
  return document;
}

const notTrusted = (message: string) => new RequestError('OPERATION_NOT_TRUSTED', message);
