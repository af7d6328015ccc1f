import { hash } from 'node:crypto';
import { isRecord } from '@animal-store/exact-json';
import type { RequestParameters } from '../../api/graphql/context.ts';
import type { GraphQLParts } from '../../api/graphql/handler.ts';
import { readText } from '../../config/text-file.ts';
import { StoreError } from '../../errors.ts';

/** The documents that may run, by hash. */
type TrustedDocuments = ReadonlyMap<unknown, string>;

/**
 * The prefix of a document identifier that is a SHA-256 (GraphQL over HTTP,
 * draft appendix "Persisted Documents").
 */
const prefix = 'sha256:';

/**
 * Reads a manifest: a JSON object of hash -> document, as the client preset of
 * GraphQL Code Generator and Relay's compiler write it, or of `sha256:` and
 * hash; or that of `@apollo/generate-persisted-query-manifest`. Every document
 * is registered by its name in the manifest and by its SHA-256, with and
 * without the prefix.
 *
 * @param file names the manifest, for messages
 * @throws Error when the text is not a manifest
 */
export function trustedDocumentsIn(
  text: string,
  file: string,
): TrustedDocuments {
  const trusted = new Map<string, string>();
  for (const [key, document] of entriesIn(text, file)) {
    if (typeof key !== 'string' || typeof document !== 'string')
      throw noManifest(file);
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

function entriesIn(text: string, file: string): Array<[unknown, unknown]> {
  let manifest: unknown;
  try {
    manifest = JSON.parse(text);
  } catch (cause) {
    const { message } = cause as Error;
    throw new Error(`${file} is not JSON: ${message}`, { cause });
  }
  if (!isRecord(manifest)) throw noManifest(file);
  const { operations } = manifest;
  if (!Array.isArray(operations)) return Object.entries(manifest);
  return operations.map((one) => [one?.id, one?.body]);
}

function noManifest(file: string) {
  return new Error(
    `${file} is not a manifest: a JSON object of hash -> document.`,
  );
}

/**
 * Finds the trusted document that a request names: by hash (`documentId`, with
 * or without `sha256:`, or `extensions.persistedQuery.sha256Hash` as Apollo's
 * clients send it), or as its exact text. A text and a `documentId` must be the
 * same document.
 *
 * @throws StoreError OPERATION_NOT_TRUSTED
 */
function trustedDocument(
  trusted: TrustedDocuments,
  { query, documentId, extensions }: RequestParameters,
) {
  const persisted = extensions?.persistedQuery as { sha256Hash?: unknown };
  const id = documentId ?? persisted?.sha256Hash;
  const isText = query !== undefined;
  const document = trusted.get(isText ? hash('sha256', query) : id);
  if (document === undefined)
    throw notTrusted(
      'Only operations that were registered beforehand are run here.',
    );
  const isOther = documentId && trusted.get(documentId) !== document;
  if (isText && isOther)
    throw notTrusted(
      '`query` and `documentId` are different documents: send one of them.',
    );
  return document;
}

const notTrusted = (message: string) =>
  new StoreError('OPERATION_NOT_TRUSTED', message);

/** @throws Error when the file is not a manifest */
export function documentParts(manifest: string): GraphQLParts {
  const file = `${manifest} (TRUSTED_DOCUMENTS)`;
  const trusted = trustedDocumentsIn(readText(manifest, file), file);
  return {
    findDocument: (parameters) => ({
      ...parameters,
      query: trustedDocument(trusted, parameters),
      extensions: undefined,
    }),
  };
}
