// The grammars of request fields (RFC 9110, section 5.6), without backtracking.
// Access reads credentials and idempotency keys, which are no lists.

// A separator in a quoted string separates nothing. An unclosed string ends
// with the field.
const elements = /(?:"(?:\\.|[^"\\])*"?|[^",])+/g;

/** Splits a list (RFC 9110, section 5.6.1). Empty elements are none. */
export function listOf(field: string | string[] = ''): string[] {
  const texts = `${field}`.match(elements) ?? [];
  return texts.map((text) => text.trim()).filter(Boolean);
}

const preference = /^([^\s=;]+)(?:\s*=\s*("?)([^\s;"]+)\2\s*(?:;|$))?/;

/** The first preference of a name counts, the others do not (RFC 7240). */
export function prefers(
  prefer: string | string[] | undefined,
  name: string,
  value: string,
): boolean {
  const given = listOf(prefer).map((one) => preference.exec(one) ?? []);
  const first = given.find(([, found]) => found?.toLowerCase() === name);
  return first?.[3]?.toLowerCase() === value;
}

/** A `Content-Type` without a charset but UTF-8 outside of quoted strings. */
export const utf8 =
  /^(?:"(?:\\.|[^"\\])*(?:"|$)|(?!;\s*charset\s*=(?!\s*(?:(?:utf-?8)?|"(?:utf-?8)?")\s*(?:;|$)))[^"])*$/i;

// All but a readable weight.
const parameters =
  /;(?!\s*q="?[\d.]+"?\s*(?:[;,]|$))[^;,"=]*(?:=(?:"(?:\\.|[^"\\])*"?|[^;,"])*)?/gi;

const star = /(?<![^,])\*(?!\/)/g;

/**
 * An `Accept` without the parameters of its ranges, which may be ignored
 * (section 12.5.1). undefined for an empty list, which accepts all.
 */
export function rangesIn(accept = ''): string | undefined {
  const ranges = listOf(accept.replace(parameters, '')).join();
  return ranges.replace(star, '*/*') || undefined;
}

/**
 * The `*` beside other codings in `Accept-Encoding`. @fastify/compress takes it
 * for gzip, even where gzip has a weight of 0.
 */
export const wildcard = /(?<=\w.*)\*[^,]*|\*[^,]*(?=,.*\w)/g;

const withPort = /^"?(?:\[(.+)\]|([\d.]+))(?::\d*)?"?$/;

/** In characters: some 20 proxies. */
const longestChain = 1000;

/** The end of what a chain of proxies has written: each adds to the end. */
export function chainOf(field: string | string[] = ''): string[] {
  const text = `${field}`;
  const end = text.slice(-longestChain);
  const isCut = end.length < text.length;
  return listOf(isCut ? end.slice(end.indexOf(',') + 1) : end);
}

/** Addresses of `X-Forwarded-For` without ports, brackets and quotes. */
export function addressesIn(field?: string | string[]): string {
  const withoutPort = (text: string) => text.replace(withPort, '$1$2');
  return chainOf(field).map(withoutPort).join();
}
