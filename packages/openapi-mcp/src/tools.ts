import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import {
  exact,
  InexactNumber,
  isRawJSON,
  parseStoredJson,
} from '@animal-store/exact-json';
import type { FastifyRequest } from 'fastify';
import inject, { type InjectOptions } from 'light-my-request';

type Arguments = Record<string, unknown>;

/** The server's own words and numbers. */
export interface Wording {
  /**
   * Creates the error for a request that is refused before it reaches an
   * operation.
   */
  refuse(status: 400 | 403, message: string): Error;
  /**
   * The text of an error for the assistant.
   *
   * @param error the body of an error response, or an error of `refuse`
   */
  describe(error: { code?: string; message?: string }): string;
}

/**
 * An operation as a tool. Int64 is text in and out, because most assistants'
 * `JSON.parse` would round it.
 */
export type Tool = ReturnType<typeof toolOf>;

export interface Schema {
  type?: string | string[];
  format?: string;
  description?: string;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  maxItems?: number;
  enum?: unknown[];
  allOf?: Schema[];
  anyOf?: Schema[];
}

interface Body {
  content?: { 'application/json': { schema: Schema } };
}

/** Of a list; int64 as text. */
export type Item = { id: string } & Record<string, unknown>;

/** What a live list sends. A heartbeat has no id. */
interface ListEvent {
  id?: string;
  item?: Item;
  /** It ends the list. */
  error?: string;
}

/** What an operation returns. */
interface Found {
  items?: Item[];
  next?: string;
}

/** Why an operation is not carried out, in the words for the assistant. */
export class Refused extends Error {
  /** @param status of HTTP */
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** An operation in OpenAPI. */
export interface RestOperation {
  operationId: string;
  summary?: string;
  description?: string;
  deprecated?: boolean;
  'x-scope'?: string;
  parameters?: Array<{
    in: string;
    name: string;
    required?: boolean;
    description?: string;
    schema: Schema;
  }>;
  requestBody?: Body;
  responses: Record<string, Body & { description: string }>;
}

export interface OpenApi {
  info: { title: string; version: string; description?: string };
  servers?: Array<{ url: string }>;
  paths: Record<string, Record<string, RestOperation>>;
  components?: { schemas?: Record<string, object> };
}

/**
 * @returns a tool for each operation that can succeed and is not deprecated, by
 *   name
 */
export function toolsOf(
  document: OpenApi,
  service: Wording,
): Map<string, Tool> {
  const { servers: [server] = [], components: { schemas = {} } = {} } =
    document;
  // Not every assistant follows references.
  const inlined = (whole: object): OpenApi =>
    JSON.parse(JSON.stringify(whole), (name, part) => {
      // They have numbers where a tool has text.
      if (name === 'examples' && Array.isArray(part)) return undefined;
      const { $ref, ...beside } = { ...part };
      if (!$ref) return part;
      const target = schemas[$ref.replace(/^.*\//, '')];
      return inlined({ ...target, ...beside });
    });
  const { paths } = inlined(document);
  const tools = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(
        ([, { deprecated, responses }]) => !deprecated && successOf(responses),
      )
      .map(([method, operation]) =>
        toolOf(method, `${server?.url ?? ''}${path}`, operation, service),
      ),
  );
  return new Map(tools.map((tool) => [tool.definition.name, tool]));
}

function successOf(responses: RestOperation['responses']) {
  return Object.entries(responses).find(([status]) =>
    status.startsWith('2'),
  )?.[1];
}

const callName = {
  type: 'string',
  description:
    'A name for this call, for example a UUID; a new one for each thing to create. After a timeout or an error, repeat the call with the same name: it is carried out once.',
};
const isDryRun = {
  type: 'boolean',
  description: 'Does all of it, and rolls it back.',
};
const next = {
  type: 'string',
  description:
    'Pass this as `after` to get the next page. Absent on the last page.',
};
/** Headers of the assistant's request that the operation gets, too. */
const passedOn =
  /^(?:authorization|host|user-agent|traceparent|x-forwarded-\w+)$/;

function toolOf(
  method: string,
  path: string,
  operation: RestOperation,
  service: Wording,
) {
  const { refuse, describe } = service;
  const {
    operationId,
    description,
    summary = description,
    parameters = [],
    requestBody,
    responses,
  } = operation;
  const given = parameters.filter((parameter) => parameter.in !== 'header');
  const body = requestBody?.content?.['application/json'].schema;
  const members = body?.properties ?? {};
  /** A member has its name for itself. */
  const takes = (header: string, argument: string) =>
    parameters.some(({ name }) => name === header) &&
    !Object.hasOwn(members, argument);
  /** A row may refer to another one by a member named as the parameter. */
  const argumentOf = (parameter: string) =>
    Object.hasOwn(members, parameter) ? 'id' : parameter;
  const success = successOf(responses);
  const answer = success?.content?.['application/json'].schema;
  // Before the revision 2026-07-28 the output of a tool is an object.
  const isList = answer?.type === 'array';
  const output = isList
    ? {
        type: 'object',
        properties: { items: answer, next },
        required: ['items'],
      }
    : answer;
  /** Those that are no parameters. */
  const own = {
    ...(takes('Idempotency-Key', 'idempotencyKey') && {
      idempotencyKey: callName,
    }),
    ...(method !== 'get' && takes('Prefer', 'isDryRun') && { isDryRun }),
  };
  const isTrial = (args: Arguments) => Boolean(own.isDryRun && args.isDryRun);
  const properties: Record<string, Schema> = {
    ...Object.fromEntries(
      given.map(({ name, description = '', schema }) => [
        argumentOf(name),
        { ...schema, description },
      ]),
    ),
    ...members,
    ...own,
  };
  const required = [
    ...given.filter((one) => one.required).map(({ name }) => argumentOf(name)),
    ...(body?.required ?? []),
  ];

  const invalid = (message: string) =>
    new Refused(400, describe(refuse(400, message)));
  /** An argument as the operation reads it: text, or anything else as JSON. */
  const textOf = (value: unknown) =>
    typeof value === 'string' ? value : `${JSON.stringify(value, exact)}`;

  function requestOf(
    args: Arguments,
    { id, headers, raw }: FastifyRequest,
  ): InjectOptions {
    const passed = Object.entries(headers).filter(([name]) =>
      passedOn.test(name),
    );
    const isGiven = (name: string) =>
      args[name] !== undefined && args[name] !== null;
    const query = given.filter(
      (one) => one.in === 'query' && isGiven(argumentOf(one.name)),
    );
    const search = new URLSearchParams(
      query.flatMap(({ name }) =>
        [args[argumentOf(name)]]
          .flat()
          .map((one): [string, string] => [name, textOf(one)]),
      ),
    );
    const target = path.replace(/\{(\w+)\}/g, (_, name) =>
      encodeURIComponent(textOf(args[argumentOf(name)]).toWellFormed()),
    );
    const payload = Object.entries(args).filter(([name]) =>
      Object.hasOwn(members, name),
    );
    return {
      method: method as 'get',
      url: `${target}?${search}`,
      remoteAddress: raw.socket.remoteAddress ?? '',
      headers: {
        ...Object.fromEntries(passed),
        // Joins the two log lines of a call.
        'x-request-id': id,
        ...(body && { 'content-type': 'application/json' }),
        ...(own.idempotencyKey &&
          isGiven('idempotencyKey') && {
            'idempotency-key': `${args.idempotencyKey}`,
          }),
        ...(isTrial(args) && { prefer: 'tx=rollback' }),
      },
      ...(body && {
        payload: JSON.stringify(Object.fromEntries(payload), exact),
      }),
    };
  }

  /** @throws Refused for arguments that the operation would misread */
  function checked(args: Arguments) {
    // The operation ignores unknown parameters. An assistant would take the
    // unfiltered list for an answer.
    if (!Object.keys(args).every((name) => Object.hasOwn(properties, name)))
      throw invalid(
        `An argument is unknown; known are ${Object.keys(properties).join(', ')}.`,
      );
    try {
      const odd = given.find((one) =>
        isLost(args[argumentOf(one.name)], one.schema),
      );
      if (odd)
        throw new Misread(
          `${argumentOf(odd.name)} must be a text, a number, true or false, or an array of some.`,
        );
      for (const [name, { type }] of Object.entries(own))
        if (args[name] != null && typeof args[name] !== type)
          throw new Misread(`${name} must be a ${type}.`);
      return withIntegers(args, { properties }) as Arguments;
    } catch (error) {
      if (error instanceof Misread) throw invalid(error.message);
      // Only the recursion can fail.
      throw invalid('The arguments are nested too deeply.');
    }
  }

  /**
   * Carries out the operation as a request of the same caller, so that its
   * scope, quota, checks, idempotency, log line and metrics are those of the
   * operation. The request passes no network, and is served while the service
   * shuts down.
   *
   * @throws Refused
   */
  async function send(
    args: Arguments,
    request: FastifyRequest,
    signal?: AbortSignal,
  ) {
    const asked = requestOf(checked(args), request);
    const { routing } = request.server;
    const accept = signal && { accept: 'text/event-stream' };
    const response = await inject(routing as never, {
      ...asked,
      headers: { ...asked.headers, ...accept },
      payloadAsStream: true,
    });
    const { statusCode: status, headers, raw } = response;
    // As a client that leaves: a signal of `inject` would be a failure.
    const leave = () => raw.res.destroy();
    if (signal?.aborted) leave();
    signal?.addEventListener('abort', leave);
    const body = response.stream();
    if (status < 400) return { status, headers, body, raw };
    const refused = describe(JSON.parse(await text(body)));
    const wait = headers['retry-after'];
    const hint = wait ? ` Try again in ${wait} s.` : '';
    throw new Refused(status, refused + hint);
  }

  /** @returns undefined for an operation without an output */
  async function ask(
    args: Arguments,
    request: FastifyRequest,
  ): Promise<Found | undefined> {
    const { status, headers, body } = await send(args, request);
    const payload = await text(body);
    if (isTrial(args) && !headers['preference-applied'])
      throw new Refused(status, 'It is done: it knows no dry run.');
    if (!output) return undefined;
    const answer = parseStoredJson(payload);
    const after = /[?&]after=([^&>]+)[^>]*>; rel="next"/.exec(
      `${headers.link}`,
    )?.[1];
    const found = isList
      ? { items: answer, ...(after && { next: after }) }
      : answer;
    return withTextIds(found, output) as Found;
  }

  /** Follows a list in the same way, until the signal. */
  async function follow(
    args: Arguments,
    request: FastifyRequest,
    signal: AbortSignal,
  ) {
    const { body, raw } = await send(args, request, signal);
    return eventsIn(body, raw.res, request.raw);
  }

  /** The blocks of server-sent events that a live list sends. */
  async function* eventsIn(
    body: Readable,
    response: object,
    { socket }: FastifyRequest['raw'],
  ): AsyncGenerator<ListEvent, void> {
    const cut = new AbortController();
    body.once('error', () => cut.abort());
    let rest = '';
    let piece = '';
    // What the assistant has not read is unsent.
    const get = () => body.readableLength + piece.length;
    Object.defineProperty(response, 'writableLength', { get });
    for await (piece of body.setEncoding('utf8')) {
      const blocks = `${rest}${piece}`.split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const { id, event, data } = Object.fromEntries(
          block.split('\n').map((line) => line.split(/: ?(.*)/s, 2)),
        );
        const value = data && parseStoredJson(data);
        if (event === 'error')
          return yield { error: describe(value as object) };
        const item = value && withTextIds(value, answer?.items);
        yield { id, item: item as Item };
        if (socket.writableNeedDrain) await once(socket, 'drain', cut);
      }
      piece = '';
    }
  }

  /** @returns a result of `tools/call` */
  async function call(args: Arguments, request: FastifyRequest) {
    const found = await ask(args, request);
    const text = found ? JSON.stringify(found) : (success?.description ?? '');
    const content = [{ type: 'text', text }];
    return { content, ...(output && { structuredContent: found }) };
  }

  /** As `tools/list` shows it. */
  const definition = {
    name: toolNameOf(operationId),
    title: summary,
    // The description is about HTTP.
    description: summary,
    inputSchema: textIdsIn({ type: 'object', properties, required }),
    ...(output && { outputSchema: textIdsIn(output) }),
    annotations: {
      readOnlyHint: method === 'get',
      destructiveHint: !['get', 'post'].includes(method),
      idempotentHint: ['get', 'put', 'delete'].includes(method),
      openWorldHint: false,
    },
  };
  return { definition, operation, ask, follow, call };
}

/** `list_pets` for `listPets`. */
export function toolNameOf(operationId: string) {
  return operationId.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * True for an argument that the operation would take for another one: no values
 * are no parameter, and null or an object is a text to search.
 */
function isLost(value: unknown, schema: Schema, isWithin = false): boolean {
  const { type, enum: values, items = schema } = schema;
  const isText = type === 'string' && values === undefined;
  if (Array.isArray(value)) {
    const isEmpty = value.length === 0;
    if (isEmpty || (isWithin && isText)) return true;
    return value.some((one) => isLost(one, items, true));
  }
  if (value === null) return isText && isWithin;
  const isNumber = value instanceof InexactNumber;
  return isText && typeof value === 'object' && !isNumber;
}

/** A schema that may be null, or is composed, with all that it says. */
function whole(schema: Schema = {}): Schema {
  const { allOf = [], anyOf = [] } = schema;
  const parts = [...anyOf, ...allOf].map(whole);
  const properties = Object.assign(
    {},
    ...[...parts, schema].map((one) => one.properties),
  );
  return Object.assign({}, ...parts, schema, { properties });
}

/** The same array or object with other values, and their places. */
function changed(
  value: unknown,
  { items, properties = {}, maxItems = Infinity }: Schema,
  change: (value: unknown, schema?: Schema, place?: string) => unknown,
  place = '',
): unknown {
  const isLeaf = typeof value !== 'object' || isRawJSON(value);
  if (isLeaf || value === null || value instanceof InexactNumber) return value;
  if (Array.isArray(value)) {
    // One too many is enough for the operation to refuse it.
    const read = value.slice(0, maxItems + 1);
    return read.map((one, at) => change(one, items, `${place}[${at}]`));
  }
  const all = Object.entries(value).map(([name, one]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : {};
    return [name, change(one, known, place ? `${place}.${name}` : name)];
  });
  return Object.fromEntries(all);
}

/** Its message is about an argument. */
class Misread extends Error {}

/**
 * The same value with int64 as integers. The operation describes the fault of
 * any other text.
 *
 * @throws Misread for one that is a number, and may be rounded
 */
function withIntegers(value: unknown, schema?: Schema, place = ''): unknown {
  const known = whole(schema);
  if (known.format !== 'int64')
    return changed(value, known, withIntegers, place);
  const isNumber = ['number', 'bigint'].includes(typeof value);
  if (isNumber && Math.abs(Number(value)) > Number.MAX_SAFE_INTEGER)
    throw new Misread(
      `${place} must be text, because most clients round a number beyond 2^53.`,
    );
  const isText = typeof value === 'string';
  if (!isText || !/^(?:0|-?[1-9]\d{0,18})$/.test(value)) return value;
  return BigInt(value);
}

/** The schema of the same value with int64 as text. */
function textIdsIn(schema: object) {
  return JSON.parse(JSON.stringify(schema), (_, part) => {
    if (part?.format !== 'int64') return part;
    const { type, description = '' } = part;
    // What follows the first sentence is about JSON numbers.
    const [about] = description.split(/(?<=\.) /);
    return {
      type: Array.isArray(type) ? ['string', 'null'] : 'string',
      pattern: '^-?\\d+$',
      description: `${about} An integer as text.`.trim(),
    };
  });
}

/** An item of JSON with int64 as text. */
export function withIdsAsText(json: string, schema: object): unknown {
  return withTextIds(parseStoredJson(json), schema);
}

/** The same value with int64 as text. */
function withTextIds(value: unknown, schema?: Schema): unknown {
  const known = whole(schema);
  const isInt64 = known.format === 'int64' && value !== null;
  if (isInt64) return JSON.stringify(value);
  return changed(value, known, withTextIds);
}
