import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyRequest } from 'fastify';
import { GraphQLError } from 'graphql';
import { StoreError } from '../../errors.ts';
import { isRecord } from '../../storage/input/record.ts';

/** The documents that may run, by hash. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/** Of a document identifier (GraphQL over HTTP, draft appendix "Persisted Documents"): what follows is the SHA-256. */
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
 * Rejects every request that does not name a trusted document: by hash (`documentId`, with or without `sha256:`, or
 * `extensions.persistedQuery.sha256Hash` as Apollo's clients send it), or as its exact text. Who sends a text and a
 * `documentId` must mean the same document by both.
 *
 * @throws StoreError OPERATION_NOT_TRUSTED
 */
export function trustedDocumentOf(trusted: TrustedDocuments, request: FastifyRequest): string {
  const { query, documentId, extensions } = parametersOf(request);
  // A text takes precedence over a hash, because Apollo Server would run the text.
  const text = typeof query === 'string' && query !== '' ? hash('sha256', query) : undefined;
  const named = isGiven(documentId) ? documentId : persistedQueryHash(extensions);
  const document = trusted.get((text ?? named) as string);
  if (document === undefined) throw notTrusted('Only operations that were registered beforehand are run here.');
  if (text && isGiven(documentId) && trusted.get(documentId as string) !== document) {
    throw notTrusted('`query` and `documentId` are different documents: send one of them.');
  }
  return document;
}

const notTrusted = (message: string) => new StoreError('OPERATION_NOT_TRUSTED', message);

/**
 * For a service without registered documents. A text runs, whatever `documentId` says: parameters that a server does
 * not know are ignored.
 *
 * @throws GraphQLError PERSISTED_QUERY_NOT_SUPPORTED, whereupon clients send the text
 */
export function assertDocument(request: FastifyRequest): void {
  const { query, documentId } = parametersOf(request);
  if (isGiven(query) || !isGiven(documentId)) return;
  throw new GraphQLError('No documents are registered here (TRUSTED_DOCUMENTS): send the text as `query`.', {
    extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED', http: { status: 400 } },
  });
}

interface Parameters {
  query?: unknown;
  documentId?: unknown;
  extensions?: unknown;
}

function parametersOf({ method, body, query }: FastifyRequest): Parameters {
  return (method === 'POST' ? body : query) ?? {};
}

/** An empty text is none (GraphQL over HTTP, "GET"). */
function isGiven(parameter: unknown): boolean {
  return parameter !== undefined && parameter !== null && parameter !== '';
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
