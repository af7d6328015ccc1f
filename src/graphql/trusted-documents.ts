import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { StoreError } from '../errors.ts';

/** The documents that may be run, by hash. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/**
 * Reads a manifest: a JSON object of hash -> document, as the client preset of GraphQL Code Generator writes it. Every
 * document counts by the hash in the manifest and by its SHA-256.
 *
 * @throws Error when the file cannot be read or is not a manifest
 */
export function readTrustedDocuments(path: string): TrustedDocuments {
  const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
  const trusted = new Map<string, string>();
  for (const [key, document] of Object.entries(manifest as Record<string, unknown>)) {
    if (typeof document !== 'string') throw new Error(`${path} is not a manifest of hash -> document.`);
    trusted.set(key, document).set(hash('sha256', document), document);
  }
  return trusted;
}

/**
 * Refuses every request that does not name a trusted document: by hash (`documentId`, or
 * `extensions.persistedQuery.sha256Hash` as Apollo's clients send it), or as its exact text.
 */
export function trustedDocumentOf(trusted: TrustedDocuments, request: FastifyRequest): string {
  const { query, documentId, extensions } = (request.method === 'POST' ? request.body : request.query) as Parameters;
  const named = documentId ?? persistedQueryHash(extensions);
  // A text counts before a hash: Apollo would run the text.
  const document = trusted.get(typeof query === 'string' && query !== '' ? hash('sha256', query) : `${named}`);
  if (document === undefined) {
    throw new StoreError('OPERATION_NOT_TRUSTED', 'Only operations that were registered beforehand are run here.');
  }
  return document;
}

interface Parameters {
  query?: unknown;
  documentId?: unknown;
  extensions?: unknown;
}

/** @param extensions an object, or its JSON when it came in a query string */
function persistedQueryHash(extensions: unknown): unknown {
  try {
    const object = typeof extensions === 'string' ? JSON.parse(extensions) : extensions;
    return object?.persistedQuery?.sha256Hash;
  } catch {
    return undefined;
  }
}
