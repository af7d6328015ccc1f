import type { Caller } from './call.ts';
import { StoreError } from './errors.ts';

/**
 * What a caller may do: `read` lists and fetches, `write` also creates, changes
 * and removes. `all` is about rows that belong to callers: also those of others.
 */
export type Right = 'read' | 'write' | 'all';
/** A right in all modules, or in one: `visits:read`. */
export type Scope = Right | `${string}:${Right}`;

const form = /^(?:[a-z][\w-]*:)?(?:read|write|all)$/;

/** The name of a module in scopes: `lost-and-found` of `Lost and found`. */
export function scopeNameOf(tag: string) {
  return tag.toLowerCase().replace(/\W+/g, '-');
}

/**
 * @param texts as in `read` or `visits:read`
 * @param modules the names of modules in scopes; absent where they are unknown
 * @throws Error for what is no scope
 */
export function assertScopes(
  texts: readonly string[],
  modules?: readonly string[],
): asserts texts is Scope[] {
  const isKnown = (text: string) => {
    const { module } = halvesOf(text);
    return form.test(text) && (!module || (modules?.includes(module) ?? true));
  };
  const unknown = texts.find((text) => !isKnown(text));
  if (unknown === undefined) return;
  const names = modules ?? ['visits'];
  const [example = 'visits'] = names;
  throw new Error(
    `must be read, write or all, or one of a module (${names.join(', ')}) like ${example}:read, not "${unknown}"`,
  );
}

/** @param needed without a module, it is permitted by one of any module */
export function hasScope(caller: Caller | null, needed: Scope) {
  return caller?.scopes.some((scope) => permits(scope, needed)) ?? false;
}

/** Scopes of which each permits the same, as one. */
export function anyOf(scopes: readonly string[]) {
  return scopes.join('|') as Scope;
}

/** @param scope one, or several of which each must permit it (`anyOf`) */
export function permits(scope: string, needed: Scope) {
  // Each request asks this, and most scopes are one.
  const isOne = !needed.includes('|') && !scope.includes('|');
  if (isOne) return permitsOne(scope, needed);
  const needs = needed.split('|');
  return scope
    .split('|')
    .every((own) => needs.some((one) => permitsOne(own, one)));
}

/** `write` includes `read`. */
function permitsOne(scope: string, needed: string) {
  const [own, wanted] = [halvesOf(scope), halvesOf(needed)];
  const isOfModule =
    !own.module || !wanted.module || own.module === wanted.module;
  const includes = own.right === 'write' && wanted.right === 'read';
  return isOfModule && (includes || own.right === wanted.right);
}

function halvesOf(scope: string) {
  const colon = scope.indexOf(':');
  const module = scope.slice(0, Math.max(0, colon));
  return { module, right: scope.slice(colon + 1) };
}

/**
 * A caller with a token is told the provider's name of the scope, if it has one
 * (RFC 6750, section 3.1). Of several that permit it, it is told one, of a
 * module of which it has a scope.
 */
export function forbidden(
  scope: Scope,
  caller?: Pick<Caller, 'scopes' | 'scopeNames'> | null,
) {
  const { scopes = [], scopeNames } = caller ?? {};
  const modules = scopes.map((one) => halvesOf(one).module);
  const all = scope.split('|');
  const own = all.find((one) => modules.includes(halvesOf(one).module));
  const first = own ?? `${all[0]}`;
  if (!scopeNames) return lacking(`an API key with the scope "${first}"`);
  const { right } = halvesOf(first);
  const known = Object.keys(scopeNames);
  const permitting = [first, scope].flatMap((one) =>
    known.filter((ours) => permits(ours, one as Scope)),
  );
  const near = permitting.find((ours) => halvesOf(ours).right === right);
  const name = scopeNames[first] ?? scopeNames[near ?? `${permitting[0]}`];
  const asked = name === undefined ? '' : `, scope="${name}"`;
  return lacking(`a token with the scope "${name ?? first}"`, {
    'www-authenticate': `Bearer error="insufficient_scope"${asked}`,
  });
}

const lacking = (credential: string, headers = {}) =>
  new StoreError('FORBIDDEN', `This needs ${credential}.`, { headers });
