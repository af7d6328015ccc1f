import { type MediaType, mediaTypes } from './media-types.ts';

/** What the status of an answer depends on. */
export interface Outcome {
  mediaType: MediaType;
  /** The status that an error asks for; undefined for none. */
  asked: number | undefined;
  /** How far the request came: no request of GraphQL over HTTP, no GraphQL document, or further. */
  failedAt: 'request' | 'document' | undefined;
  hasData: boolean;
  hasErrors: boolean;
}

/**
 * The HTTP status of an answer (GraphQL over HTTP, edition of September 2026, "Status Codes"): 400 for what cannot be
 * parsed, 422 for what was parsed and refused, 294 for data with errors. A client that accepts only `application/json`
 * gets 200 for every well-formed request and 400 otherwise, as earlier drafts had it: by the status it could not tell
 * our answer from an intermediary's, and those who ask that way today rely on it.
 */
export function statusOf({ mediaType, asked = 200, failedAt, hasData, hasErrors }: Outcome): number {
  if (mediaType === mediaTypes.json) return asked === 400 && failedAt !== 'request' ? 200 : asked;
  if (asked !== 200 && asked !== 400) return asked;
  if (hasData) return hasErrors ? 294 : 200;
  return failedAt === 'document' ? 400 : 422;
}

/** Words for the status that no registry has. */
export const partialSuccess = 'Partial Success';
