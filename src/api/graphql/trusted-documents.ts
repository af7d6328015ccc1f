import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { StoreError } from '../../errors.ts';
import { isRecord } from '../../storage/input/check.ts';
import type { RequestParameters } from './over-http.ts';

/** The documents that may run, by hash. */
export type TrustedDocuments = ReadonlyMap<unknown, string>;

/** The prefix of a document identifier that is a SHA-256 (GraphQL over HTTP, draft appendix "Persisted Documents"). */
const prefix = 'sha256:';

/**
 * Reads a manifest: a JSON object of hash -> document, as the client preset of GraphQL Code Generator writes it, or of
 * `sha256:` and hash. Every document is registered by its name in the manifest and by its SHA-256, with and without the
 * prefix.
 *
 * @throws Error when the file cannot be read or is not a manifest
 */
export function readTrustedDocuments(path: string): TrustedDocuments {
  const trusted = new Map<string, string>();
  for (const [key, document] of Object.entries(manifestIn(path))) {
    if (typeof document !== 'string') throw noManifest(path);
    const digest = hash('sha256', document);
    if (key.startsWith(prefix) && key !== `${prefix}${digest}`) {
      throw new Error(`${path} (TRUSTED_DOCUMENTS) has a document under ${key} whose SHA-256 is ${digest}.`);
    }
    trusted.set(key, document).set(digest, document).set(`${prefix}${digest}`, document);
  }
  return trusted;
}

function manifestIn(path: string): object {
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (isRecord(manifest)) return manifest;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) {
      throw new Error(`${path} (TRUSTED_DOCUMENTS) cannot be read: ${(cause as Error).message}`, { cause });
    }
  }
  throw noManifest(path);
}

function noManifest(path: string): Error {
  return new Error(`${path} (TRUSTED_DOCUMENTS) is not a manifest: a JSON object of hash -> document.`);
}

/**
 * Finds the trusted document that a request names: by hash (`documentId`, with or without `sha256:`, or
 * `extensions.persistedQuery.sha256Hash` as Apollo's clients send it), or as its exact text. A text and a `documentId`
 * must be the same document.
 *
 * @throws StoreError OPERATION_NOT_TRUSTED
 */
export function trustedDocument(
  trusted: TrustedDocuments,
  { query, documentId, extensions }: RequestParameters,
): string {
  const { sha256Hash } = (extensions?.persistedQuery ?? {}) as { sha256Hash?: unknown };
  const document = trusted.get(query === undefined ? (documentId ?? sha256Hash) : hash('sha256', query));
  if (document === undefined) throw notTrusted('Only operations that were registered beforehand are run here.');
  if (query !== undefined && documentId !== undefined && trusted.get(documentId) !== document) {
    throw notTrusted('`query` and `documentId` are different documents: send one of them.');
  }
  return document;
}

const notTrusted = (message: string) => new StoreError('OPERATION_NOT_TRUSTED', message);
