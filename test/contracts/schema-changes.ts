/** What breaks between two versions of a JSON Schema, as OpenAPI 3.1 uses it. */

export type Json = any;

/** Which way the value goes: what a client sends may be asked less of, what it receives must promise no less. */
export type Direction = 'request' | 'response';

export interface Documents {
  before: Json;
  after: Json;
}

const lowerBounds = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const upperBounds = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
const beyondJudgement = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'const', 'patternProperties', 'propertyNames'];

/** Compares two schemas, references followed. @returns one sentence per breaking change */
export class SchemaChanges {
  readonly #documents: Documents;
  readonly #direction: Direction;
  readonly #compared = new Set<string>();
  readonly found: string[] = [];

  constructor(documents: Documents, direction: Direction) {
    this.#documents = documents;
    this.#direction = direction;
  }

  compare(before: Json, after: Json, where: string): void {
    const pair = `${before?.$ref} ${after?.$ref} ${where}`;
    if (before?.$ref && this.#compared.has(pair)) return;
    this.#compared.add(pair);
    const [old, now] = [resolved(this.#documents.before, before), resolved(this.#documents.after, after)];
    this.#types(old, now, where);
    this.#values(old, now, where);
    this.#bounds(old, now, where);
    this.#properties(old, now, where);
    if (old.items && now.items) this.compare(old.items, now.items, `each of ${where}`);
  }

  #break(where: string, what: string): void {
    this.found.push(`${where} ${what}`);
  }

  get #isRequest(): boolean {
    return this.#direction === 'request';
  }

  #types(old: Json, now: Json, where: string): void {
    const [before, after] = [typesOf(old), typesOf(now)];
    const [narrow, wide] = this.#isRequest ? [before, after] : [after, before];
    const isKept = wide.size === 0 || (narrow.size > 0 && [...narrow].every((type) => wide.has(type)));
    if (!isKept) this.#break(where, `was ${list(before)} and is now ${list(after)}`);
    const isFormatKept = old.format === now.format || (this.#isRequest ? !now.format : !old.format);
    if (!isFormatKept) this.#break(where, `had the format ${old.format ?? 'none'} and has now ${now.format ?? 'none'}`);
  }

  #values(old: Json, now: Json, where: string): void {
    // A new value in a response is an addition, as it is in GraphQL: clients are told to expect them.
    const lost = (old.enum ?? []).filter((value: Json) => now.enum && !now.enum.includes(value));
    if (this.#isRequest && lost.length > 0) this.#break(where, `no longer takes ${lost.join(', ')}`);
    if (this.#isRequest && !old.enum && now.enum) this.#break(where, `takes only ${now.enum.join(', ')} now`);
    if (!this.#isRequest && old.enum && !now.enum) this.#break(where, `is no longer one of ${old.enum.join(', ')}`);
    if (JSON.stringify(old.default) !== JSON.stringify(now.default)) {
      this.#break(where, `had the default ${JSON.stringify(old.default)} and has now ${JSON.stringify(now.default)}`);
    }
    for (const keyword of beyondJudgement) {
      if (JSON.stringify(old[keyword]) !== JSON.stringify(now[keyword])) {
        this.#break(where, `has another ${keyword}, which this comparison cannot judge`);
      }
    }
  }

  #bounds(old: Json, now: Json, where: string): void {
    const [outer, inner] = this.#isRequest ? [now, old] : [old, now];
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
    for (const keyword of broken) {
      this.#break(where, `had the ${keyword} ${old[keyword] ?? 'none'} and has now ${now[keyword] ?? 'none'}`);
    }
  }

  #properties(old: Json, now: Json, where: string): void {
    const [before, after] = [new Set(old.required ?? []), new Set(now.required ?? [])];
    for (const [name, property] of Object.entries<Json>(old.properties ?? {})) {
      const member = `${where}.${name}`;
      if (!now.properties?.[name]) this.#break(member, 'was removed');
      else this.compare(property, now.properties[name], member);
      if (!this.#isRequest && before.has(name) && !after.has(name) && now.properties?.[name]) {
        this.#break(member, 'was always there and is now optional');
      }
    }
    const demanded = this.#isRequest ? [...after].filter((name) => !before.has(name)) : [];
    for (const name of demanded) this.#break(`${where}.${name}`, 'is now required');
    const isClosed = this.#isRequest && old.additionalProperties !== false && now.additionalProperties === false;
    if (isClosed) this.#break(where, 'takes no unknown members any more');
  }
}

/** What stands beside a reference, as OpenAPI 3.1 allows, counts before what it refers to. */
export function resolved(document: Json, value: Json): Json {
  if (typeof value?.$ref !== 'string') return value ?? {};
  const { $ref, ...beside } = value;
  const path = $ref.slice(2).split('/');
  const target = path.reduce(
    (node: Json, key: string) => node?.[key.replace(/~1/g, '/').replace(/~0/g, '~')],
    document,
  );
  return { ...resolved(document, target), ...beside };
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
