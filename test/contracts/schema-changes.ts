/** What breaks between two versions of a JSON Schema, as OpenAPI 3.1 uses it. References are replaced by what they mean. */

export type Json = any;

/** Which way the value goes: what a client sends may be asked less of, what it receives must promise no less. */
export type Direction = 'request' | 'response';

const lowerBounds = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const upperBounds = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
const beyondJudgement = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'const', 'patternProperties', 'propertyNames'];

/** @returns one sentence per breaking change */
export function schemaChanges(direction: Direction, old: Json = {}, now: Json = {}, where = ''): string[] {
  const isRequest = direction === 'request';
  const changes = [
    ...typeChanges(isRequest, old, now),
    ...valueChanges(isRequest, old, now),
    ...boundChanges(isRequest, old, now),
  ];
  const ofItems = old.items && now.items ? schemaChanges(direction, old.items, now.items, `each of ${where}`) : [];
  return [...changes.map((what) => `${where} ${what}`), ...memberChanges(direction, old, now, where), ...ofItems];
}

function typeChanges(isRequest: boolean, old: Json, now: Json): string[] {
  const [before, after] = [typesOf(old), typesOf(now)];
  const [narrow, wide] = isRequest ? [before, after] : [after, before];
  const found: string[] = [];
  const isKept = wide.size === 0 || (narrow.size > 0 && [...narrow].every((type) => wide.has(type)));
  if (!isKept) found.push(`was ${list(before)} and is now ${list(after)}`);
  const isFormatKept = old.format === now.format || (isRequest ? !now.format : !old.format);
  if (!isFormatKept) found.push(`had the format ${old.format ?? 'none'} and has now ${now.format ?? 'none'}`);
  return found;
}

function valueChanges(isRequest: boolean, old: Json, now: Json): string[] {
  const found: string[] = [];
  // A new value in a response is an addition, as it is in GraphQL: clients are told to expect them.
  const lost = (old.enum ?? []).filter((value: Json) => now.enum && !now.enum.includes(value));
  if (isRequest && lost.length > 0) found.push(`no longer takes ${lost.join(', ')}`);
  if (isRequest && !old.enum && now.enum) found.push(`takes only ${now.enum.join(', ')} now`);
  if (!isRequest && old.enum && !now.enum) found.push(`is no longer one of ${old.enum.join(', ')}`);
  const differs = (keyword: string) => JSON.stringify(old[keyword]) !== JSON.stringify(now[keyword]);
  if (differs('default')) {
    found.push(`had the default ${JSON.stringify(old.default)} and has now ${JSON.stringify(now.default)}`);
  }
  const unjudged = beyondJudgement.filter(differs);
  return [...found, ...unjudged.map((keyword) => `has another ${keyword}, which this comparison cannot judge`)];
}

function boundChanges(isRequest: boolean, old: Json, now: Json): string[] {
  const [outer, inner] = isRequest ? [now, old] : [old, now];
  const exceeds = (keyword: string, isLower: boolean) => {
    if (outer[keyword] === undefined) return false;
    if (inner[keyword] === undefined) return true;
    return isLower ? outer[keyword] > inner[keyword] : outer[keyword] < inner[keyword];
  };
  const broken = [
    ...lowerBounds.filter((keyword) => exceeds(keyword, true)),
    ...upperBounds.filter((keyword) => exceeds(keyword, false)),
    ...(outer.pattern !== undefined && outer.pattern !== inner.pattern ? ['pattern'] : []),
  ];
  return broken.map((keyword) => `had the ${keyword} ${old[keyword] ?? 'none'} and has now ${now[keyword] ?? 'none'}`);
}

function memberChanges(direction: Direction, old: Json, now: Json, where: string): string[] {
  const isRequest = direction === 'request';
  const [before, after] = [new Set<string>(old.required ?? []), new Set<string>(now.required ?? [])];
  const found: string[] = [];
  for (const [name, property] of Object.entries<Json>(old.properties ?? {})) {
    const [member, still] = [`${where}.${name}`, now.properties?.[name]];
    if (!still) found.push(`${member} was removed`);
    else found.push(...schemaChanges(direction, property, still, member));
    const isOptional = !isRequest && still && before.has(name) && !after.has(name);
    if (isOptional) found.push(`${member} was always there and is now optional`);
  }
  const demanded = isRequest ? [...after].filter((name) => !before.has(name)) : [];
  found.push(...demanded.map((name) => `${where}.${name} is now required`));
  const isClosed = isRequest && old.additionalProperties !== false && now.additionalProperties === false;
  return isClosed ? [...found, `${where} takes no unknown members any more`] : found;
}

/**
 * The document with what its references mean in their place; none of its schemas contains itself. What stands beside a
 * reference, as OpenAPI 3.1 allows, counts before it.
 */
export function withoutReferences(document: Json, value: Json = document): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => withoutReferences(document, one));
  const { $ref, ...beside } = value;
  const path: string[] = typeof $ref === 'string' ? $ref.slice(2).split('/') : [];
  const target = path.reduce((node, key) => node?.[key.replace(/~1/g, '/').replace(/~0/g, '~')], document);
  const members = Object.entries(beside).map(([name, one]) => [name, withoutReferences(document, one)]);
  return { ...(path.length > 0 && withoutReferences(document, target)), ...Object.fromEntries(members) };
}

/** `number` includes `integer`. Empty: any. */
function typesOf({ type }: Json): Set<string> {
  const types = new Set<string>([type ?? []].flat());
  if (types.has('number')) types.add('integer');
  return types;
}

function list(types: Set<string>): string {
  return types.size === 0 ? 'anything' : [...types].join(' or ');
}
