import { hash } from 'node:crypto';

/** Entity tags (RFC 9110 section 8.8.3): a name for the bytes of an answer, by which a client asks whether they changed. */

/** @returns 128 bits of a SHA-256, as text that may stand in a tag */
export function contentTag(content: string | Buffer): string {
  return hash('sha256', content, 'base64url').slice(0, 22);
}

/** Two codings of one text are two representations, and strong tags must tell them apart (section 8.8.3.3). */
export function entityTag(content: string, coding: string | undefined): string {
  return coding === undefined ? `"${content}"` : `"${content}-${coding}"`;
}

/**
 * Evaluates `If-None-Match` (section 13.1.2): `*`, or a list of tags, compared weakly. A tag of the same text in another
 * coding matches, too: what the client has is current, however it came.
 *
 * @returns the entity tag that the client has; undefined when it has none of these
 */
export function matchingTag(
  header: string | undefined,
  content: string,
  coding: string | undefined,
  codings: readonly string[],
): string | undefined {
  if (header === undefined) return undefined;
  const selected = entityTag(content, coding);
  if (header.trim() === '*') return selected;
  const current = [selected, ...[undefined, ...codings].map((other) => entityTag(content, other))];
  // A cache finds the stored response by the tag of the 304 (RFC 9111 section 4.3.4), so it must be one that it has.
  // Between the tags of a list are commas and spaces, of which ours have none, so one that is found is one of the list.
  return current.find((tag) => header.includes(tag));
}
