import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { StoreError } from '../errors.ts';

/** The documents that may run, by hash. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/**
 * Reads a manifest: a JSON object of hash -> document, as the client preset of GraphQL Code Generator writes it. Every
 * document is registered by the hash in the manifest and by its SHA-256.
 *
 * @throws Error when the file cannot be read or is not a manifest
 */
export function readTrustedDocuments(path: string): TrustedDocuments {
  const trusted = new Map<string, string>();
  for (const [key, document] of Object.entries(manifestIn(path))) {
    if (typeof document !== 'string') throw noManifest(path);
    trusted.set(key, document).set(hash('sha256', document), document);
  }
  return trusted;
}

function manifestIn(path: string): object {
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof manifest === 'object' && manifest !== null && !Array.isArray(manifest)) return manifest;
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
 * Rejects every request that does not name a trusted document: by hash (`documentId`, or
 * `extensions.persistedQuery.sha256Hash` as Apollo's clients send it), or as its exact text.
 */
export function trustedDocumentOf(trusted: TrustedDocuments, request: FastifyRequest): string {
  const { query, documentId, extensions } = ((request.method === 'POST' ? request.body : request.query) ??
    {}) as Parameters;
  // A text takes precedence over a hash, because Apollo Server would run the text.
  const named = typeof query === 'string' && query !== '' ? hash('sha256', query) : documentId;
  const document = trusted.get((named ?? persistedQueryHash(extensions)) as string);
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

/** @param extensions an object, or its JSON when it comes from a query string */
function persistedQueryHash(extensions: unknown): unknown {
  try {
    const object = typeof extensions === 'string' ? JSON.parse(extensions) : extensions;
    return object?.persistedQuery?.sha256Hash;
  } catch {
    return undefined;
  }
}
