import { rules } from './generated/rules.ts';
import { writeRest } from './json.ts';
import type { Int64, NewPet, Pet, PetStatus } from './pet.ts';
import type { Code } from './store-error.ts';

/**
 * An error of the service, or a connection that breaks. `retryAfter` is in
 * seconds.
 */
export type FakeFailure =
  | {
      status: number;
      code: Code;
      message?: string | undefined;
      retryAfter?: number | undefined;
    }
  | 'NETWORK_ERROR';

type Query = { query: string; variables: Record<string, unknown> };
/** A live list. `undefined` breaks its connection. */
type Follower = (pet: Pet | undefined) => void;

/**
 * The service in memory, for tests of programs that use the client: `new
 * AnimalStore({ url: 'http://fake', key: 'test', fetch: new FakeService().fetch
 * })`. It answers as the service does: pages, counts, creations that happen
 * once, live lists, and errors for invalid input, unknown ids and wrong keys.
 * It knows no quota, scopes or time limits.
 */
export class FakeService {
  /** All animals, by ascending id. */
  readonly pets: Pet[] = [];
  /** Answers the documents of `AnimalStore.graphql`: returns their `data`. */
  graphql: (request: Query) => unknown = () => {
    throw new Error(
      'Set the member graphql of FakeService to answer documents.',
    );
  };
  readonly #key: string | undefined;
  readonly #created = new Map<string, Pet>();
  readonly #followers = new Set<Follower>();
  readonly #failures: FakeFailure[] = [];

  /** @param key the only valid one; every key is valid when absent */
  constructor({ key }: { key?: string | undefined } = {}) {
    this.#key = key;
  }

  /** Adds an animal, as another client would. */
  add({ name, categoryId, status = rules.defaultStatus }: NewPet): Pet {
    const pet = {
      id: BigInt(this.pets.length + 1),
      name,
      categoryId: BigInt(categoryId),
      status,
    };
    this.pets.push(pet);
    for (const send of this.#followers) send(pet);
    return pet;
  }

  /** Fails the next requests, one for each failure. */
  failNext(...failures: FakeFailure[]): void {
    this.#failures.push(...failures);
  }

  /** Breaks the connections of all live lists. */
  disconnect(): void {
    for (const send of this.#followers) send(undefined);
  }

  /** Takes the place of the global `fetch`. */
  readonly fetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    request.signal.throwIfAborted();
    const failure = this.#failures.shift();
    if (failure === 'NETWORK_ERROR') throw new TypeError('fetch failed');
    try {
      if (failure)
        throw new Refusal(
          failure.status,
          failure.code,
          failure.message,
          failure.retryAfter,
        );
      if (
        this.#key !== undefined &&
        request.headers.get('authorization') !== `Bearer ${this.#key}`
      ) {
        throw new Refusal(401, 'UNAUTHENTICATED', 'The API key is not valid.');
      }
      const { pathname } = new URL(request.url);
      if (pathname.endsWith('/graphql'))
        return this.#answer(request, await request.text());
      if (request.method === 'POST')
        return this.#create(request, await request.text());
      const [, id] = /\/v1\/pets\/(-?\d+)$/.exec(pathname) ?? [];
      return id === undefined ? this.#list(request) : this.#one(BigInt(id));
    } catch (error) {
      if (error instanceof Refusal) return error.response;
      throw error;
    }
  };

  #list({ url, headers }: Request): Response {
    const target = new URL(url);
    const text = Object.fromEntries(target.searchParams) as {
      status?: PetStatus;
      limit?: string;
      after?: string;
      sort?: string;
    };
    const { status, limit = `${rules.limit.default}`, after, sort } = text;
    const isDescending = sort === 'id_desc';
    refuse([
      statusRule(status),
      inPlainDigits(limit, (text) =>
        rangeRule('limit', text, rules.limit.min, rules.limit.max),
      ),
      after && inPlainDigits(after, (text) => int64Rule('after', text)),
      wordRule('sort', ['id', 'id_desc'], sort),
    ]);
    const ascending = this.pets.filter(
      (pet) => !status || pet.status === status,
    );
    const all = isDescending ? ascending.toReversed() : ascending;
    const rest = all.filter(
      ({ id }) =>
        after === undefined ||
        (isDescending ? id < BigInt(after) : id > BigInt(after)),
    );
    const page = rest.slice(0, Number(limit));
    target.searchParams.set('after', `${page.at(-1)?.id}`);
    const isCounted = headers.get('prefer') === 'count=exact';
    return json(200, page, {
      ...(page.length < rest.length && { link: `<${target}>; rel="next"` }),
      ...(isCounted && {
        'x-total-count': `${all.length}`,
        'preference-applied': 'count=exact',
      }),
    });
  }

  #one(id: bigint): Response {
    const pet = this.pets.find((one) => one.id === id);
    if (!pet)
      throw new Refusal(
        404,
        'NOT_FOUND',
        `There is no animal with the id ${id}.`,
      );
    return json(200, pet);
  }

  #create({ headers }: Request, body: string): Response {
    const key = keyIn(headers.get('idempotency-key'));
    const given = JSON.parse(body, digitsOf) as NewPet & { categoryId: string };
    const { name, categoryId, status = rules.defaultStatus } = given;
    refuse([nameRule(name), categoryRule(categoryId), statusRule(status)]);
    const before = key === undefined ? undefined : this.#created.get(key);
    if (before) {
      const isSame =
        before.name === name &&
        before.categoryId === BigInt(categoryId) &&
        before.status === status;
      if (!isSame)
        throw new Refusal(422, 'IDEMPOTENCY_KEY_REUSED', rules.keyReused);
      return json(201, before, { 'idempotent-replayed': 'true' });
    }
    const pet = this.add({ name, categoryId, status });
    if (key !== undefined) this.#created.set(key, pet);
    return json(201, pet);
  }

  #answer({ headers, signal }: Request, body: string): Response {
    const { query, variables = {} } = JSON.parse(body) as Query;
    if (headers.get('accept') === 'text/event-stream')
      return this.#follow(variables, signal);
    return json(200, { data: this.graphql({ query, variables }) });
  }

  #follow(
    { after, status }: { after?: string; status?: PetStatus },
    signal: AbortSignal,
  ): Response {
    refuseVariable(status);
    refuse([after !== undefined && int64Rule('after', after)]);
    const begin =
      after === undefined ? (this.pets.at(-1)?.id ?? 0n) : BigInt(after);
    let follower: Follower | undefined;
    const leave = () => follower && this.#followers.delete(follower);
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const write = (text: string) =>
          controller.enqueue(new TextEncoder().encode(`${text}\n\n`));
        follower = (pet) => {
          if (pet && pet.id > begin && (!status || pet.status === status))
            write(eventOf(pet));
          if (pet) return;
          leave();
          controller.close();
        };
        write(`id: ${begin}`);
        for (const pet of this.pets) follower(pet);
        this.#followers.add(follower);
        signal.addEventListener(
          'abort',
          () => leave() && controller.error(signal.reason),
          { once: true },
        );
      },
      cancel: () => void leave(),
    });
    return new Response(stream, {
      headers: { 'content-type': 'text/event-stream' },
    });
  }
}

class Refusal extends Error {
  readonly response: Response;

  constructor(
    status: number,
    code: Code,
    message: string = code,
    retryAfter?: number,
  ) {
    super(message);
    this.response = json(
      status,
      { code, message, status },
      retryAfter !== undefined && { 'retry-after': `${retryAfter}` },
    );
  }
}

function json(
  status: number,
  body: unknown,
  headers: Record<string, string> | false = {},
): Response {
  return new Response(writeRest(body), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

function eventOf(pet: Pet): string {
  const [id, categoryId] = [`${pet.id}`, `${pet.categoryId}`];
  const petAdded = { ...pet, id, categoryId };
  return `event: next\nid: ${id}\ndata: ${JSON.stringify({ data: { petAdded } })}`;
}

/** Keeps the digits of the category. */
function digitsOf(
  key: string,
  value: unknown,
  context?: { source?: string },
): unknown {
  return key === 'categoryId' ? context?.source : value;
}

/**
 * @returns the key without its quotation marks; undefined without one
 */
function keyIn(text: string | null): string | undefined {
  if (text === null) return undefined;
  const [, quoted] =
    /^"((?:[ !#-[\]-~]|\\["\\])*)"(?: *;[ -~]*)?$/.exec(text) ?? [];
  const bare = text.startsWith('"') ? '' : text;
  const key = quoted?.replace(/\\(.)/g, '$1') ?? bare;
  const isValid = /^[!-~]+$/.test(key) && key.length <= rules.longestKey;
  const form = `1 to ${rules.longestKey} visible ASCII characters, bare or as a quoted string`;
  refuse([!isValid && `Idempotency-Key must be ${form}`]);
  return key;
}

/** @param faults sentences about invalid members */
function refuse(faults: Array<string | false | undefined>): void {
  const found = faults.filter(Boolean);
  if (found.length > 0)
    throw new Refusal(400, 'BAD_USER_INPUT', `${found.join('; ')}.`);
}

const int64Rule = (name: string, value: Int64) =>
  rangeRule(name, value, -(2n ** 63n), 2n ** 63n - 1n);

function rangeRule(
  name: string,
  value: Int64,
  least: bigint | number,
  greatest: bigint | number,
) {
  const isWithin =
    /^-?\d+$/.test(`${value}`) &&
    BigInt(value) >= least &&
    BigInt(value) <= greatest;
  return (
    !isWithin && `${name} must be an integer between ${least} and ${greatest}`
  );
}

/** In the words of graphql-js. */
function refuseVariable(status: unknown): void {
  if (status == null || !statusRule(status)) return;
  const near = rules.statuses.find(
    (one) => one === `${status}`.trim().toLowerCase(),
  );
  const hint = near ? ` Did you mean the enum value "${near}"?` : '';
  const fault =
    typeof status === 'string'
      ? `Value "${status}" does not exist in "PetStatus" enum.${hint}`
      : `Enum "PetStatus" cannot represent non-string value: ${status}.`;
  const message = `Variable "$status" got invalid value ${JSON.stringify(status)}; ${fault}`;
  throw new Refusal(400, 'BAD_USER_INPUT', message);
}

const statusRule = (status: unknown) =>
  wordRule('status', rules.statuses, status);

function wordRule(name: string, all: readonly unknown[], word: unknown) {
  if (word === undefined || all.includes(word)) return false;
  const isNear =
    typeof word === 'string' && all.includes(word.trim().toLowerCase());
  const near = isNear ? ', spelled exactly so' : '';
  return `${name} must be one of ${all.join(', ')}${near}${butNot(word)}`;
}

/** A text such as `1e21`, `5.0` or `007` names an integer. */
function inPlainDigits(text: string, rule: (text: string) => string | false) {
  const isPlain = /^(0|-?[1-9]\d*)$/.test(text);
  const fault = rule(isPlain ? text : 'other');
  const isOther = !isPlain && Number(text) % 1 === 0;
  return fault && fault + (isOther ? ', in plain digits' : '');
}

/** @param source the JSON of the category */
function categoryRule(source: string | undefined) {
  if (source === undefined) return 'categoryId is required';
  const fault = int64Rule('categoryId', source);
  return (
    fault &&
    fault +
      (source.startsWith('"')
        ? ', not a string'
        : source === 'null'
          ? ', not null'
          : '')
  );
}

/** Names the type of a value that should have been a text. */
function butNot(value: unknown): string {
  if (value === null) return ', not null';
  const type = Array.isArray(value) ? 'array' : typeof value;
  if (type === 'string') return '';
  return `, not ${/^[ao]/.test(type) ? 'an' : 'a'} ${type}`;
}

function nameRule(name: unknown) {
  if (name === undefined) return 'name is required';
  if (typeof name !== 'string') return `name must be a string${butNot(name)}`;
  if (name.includes('\u0000') || !name.isWellFormed())
    return 'name must be free of U+0000 and of lone surrogates';
  return (
    [...name].length > rules.longestName &&
    `name must be at most ${rules.longestName} characters long`
  );
}
