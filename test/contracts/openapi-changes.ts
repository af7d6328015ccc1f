import { isDeepStrictEqual } from 'node:util';

export type Json = any;

/**
 * Compares two OpenAPI documents. No maintained package for this works offline
 * and supports OpenAPI 3.1. This function supports what the service uses of it,
 * and reports every change that it cannot judge as breaking.
 *
 * @returns one sentence per breaking change; none when the newer document
 *   serves every client of the older one
 */
export function breakingOpenApiChanges(older: Json, newer: Json): string[] {
  const [before, after] = [withoutReferences(older), withoutReferences(newer)];
  const [old, now] = [before.components ?? {}, after.components ?? {}];
  const found = [
    ...changes(addressesOf(before), addressesOf(after), 'the address '),
    ...changes(old.schemas, now.schemas, 'the schema '),
    ...changes(
      old.securitySchemes,
      now.securitySchemes,
      'the security scheme ',
      (scheme, other, where) =>
        scheme.type === other.type && scheme.scheme === other.scheme
          ? []
          : [`${where} has changed`],
    ),
    ...changes(operationsOf(before), operationsOf(after), '', operationChanges),
  ];
  return [...new Set(found)];
}

type Compare = (old: Json, now: Json, where: string) => string[];

/** @returns the entries that were removed, and the changes of the others */
function changes(
  before: Json = {},
  after: Json = {},
  what: string,
  compare: Compare = () => [],
): string[] {
  return Object.entries(before).flatMap(([name, old]) => {
    const where = `${what}${name}`;
    return after[name] === undefined
      ? [`${where} was removed`]
      : compare(old, after[name], where);
  });
}

const byName = (all: Json[] = [], ...names: string[]): Json =>
  Object.fromEntries(
    all.map((one) => [names.map((name) => one[name]).join(' parameter '), one]),
  );

/** The paths of the addresses: hosts differ by installation. */
const addressesOf = ({ servers = [] }: Json): Json =>
  Object.fromEntries(
    servers.map(({ url, variables }: Json) => {
      const filled = url.replace(
        /\{(\w+)\}/g,
        (_: string, name: string) => variables[name].default,
      );
      return [new URL(filled, 'http://service').pathname, {}];
    }),
  );

/**
 * The operations by method and path, with the parameters of the path and the
 * credentials of the document.
 */
function operationsOf({ paths = {}, security }: Json): Json {
  const operations = Object.entries<Json>(paths).flatMap(
    ([path, { parameters = [], ...methods }]) =>
      Object.entries<Json>(methods).flatMap(([method, operation]) => {
        if (!operation.responses) return [];
        const all = byName(
          [...parameters, ...(operation.parameters ?? [])],
          'in',
          'name',
        );
        return [
          [
            `${method.toUpperCase()} ${path}`,
            { security, ...operation, parameters: all },
          ],
        ];
      }),
  );
  return Object.fromEntries(operations);
}

function operationChanges(old: Json, now: Json, operation: string): string[] {
  const [body = {}, newBody = {}] = [old.requestBody, now.requestBody];
  const isNew = (name: string) => old.parameters[name] === undefined;
  const isSuccess = (status: string) => status.startsWith('2');
  const success = Object.keys(old.responses).filter(isSuccess);
  const found = [
    ...['operationId', 'security'].flatMap((name) =>
      difference(name, old, now, 'it'),
    ),
    ...changes(
      old.parameters,
      now.parameters,
      'the ',
      (parameter, still, where) => [
        ...(still.required && !parameter.required
          ? [`${where} is now required`]
          : []),
        ...schemaChanges(true, parameter.schema, still.schema, where),
      ],
    ),
    ...Object.keys(now.parameters)
      .filter((name) => isNew(name) && now.parameters[name].required)
      .map((name) => `the new ${name} is required`),
    ...(newBody.required && !body.required ? ['a body is now required'] : []),
    ...contentChanges(true, body, newBody, 'the body'),
    ...changes(
      old.responses,
      now.responses,
      'the response ',
      (response, still, where) => [
        ...changes(
          response.headers,
          still.headers,
          `${where} with the header `,
        ),
        ...contentChanges(false, response, still, where),
      ],
    ),
    ...Object.keys(now.responses)
      .filter(
        (status) =>
          success.length > 0 && isSuccess(status) && !success.includes(status),
      )
      .map((status) => `it may now succeed with ${status}`),
  ];
  return found.map((what) => `${operation}: ${what}`);
}

function contentChanges(
  isRequest: boolean,
  old: Json,
  now: Json,
  where: string,
): string[] {
  return changes(
    old.content,
    now.content,
    `${where} as `,
    ({ schema }, still) =>
      schemaChanges(isRequest, schema, still.schema, where),
  );
}

function difference(
  name: string,
  old: Json,
  now: Json,
  where: string,
): string[] {
  if (isDeepStrictEqual(old[name], now[name])) return [];
  const [before = 'none', after = 'none'] = [
    JSON.stringify(old[name]),
    JSON.stringify(now[name]),
  ];
  return [`${where} had the ${name} ${before} and has now ${after}`];
}

const isAtLeast = (least: Json, value: Json) =>
  least === undefined || value >= least;
const isAtMost = (most: Json, value: Json) =>
  most === undefined || value <= most;
const isAllOf = (all: Json, part: Json) =>
  all === undefined ||
  (part !== undefined &&
    [part].flat().every((one: Json) => [all].flat().includes(one)));
const isFree = (wide: Json, narrow: Json) =>
  wide === undefined || wide === narrow;

/**
 * Whether one value of a keyword accepts everything that another accepts. A
 * keyword without a rule must not change.
 */
const takes: Record<string, (wide: Json, narrow: Json) => boolean> = {
  type: (wide, narrow) =>
    isAllOf(wide === 'number' ? ['number', 'integer'] : wide, narrow),
  enum: isAllOf,
  ...{
    format: isFree,
    pattern: isFree,
    additionalProperties: (wide) => wide !== false,
  },
};
/** Descriptive keywords, and keywords that are compared member by member. */
const beside = [
  'title',
  'description',
  'example',
  'examples',
  'deprecated',
  'properties',
  'required',
  'items',
];

/**
 * @param isRequest a request may require less than before; a response must not
 *   promise less
 */
function schemaChanges(
  isRequest: boolean,
  old: Json = {},
  now: Json = {},
  where: string,
): string[] {
  const [wide, narrow] = isRequest ? [now, old] : [old, now];
  const keywords = [
    ...new Set([...Object.keys(old), ...Object.keys(now)]),
  ].filter((name) => !beside.includes(name));
  const isTaken = (name: string) => {
    // A new value in a response is an addition, as in GraphQL: the
    // documentation tells clients to expect them.
    if (name === 'enum' && !isRequest) return narrow.enum !== undefined;
    if (name === 'additionalProperties' && !isRequest) return true;
    const ofBound = name.match(/^(?:exclusiveM|m)in/) ? isAtLeast : isAtMost;
    const take = /^(?:exclusiveM|m)(?:in|ax)/.test(name)
      ? ofBound
      : takes[name];
    return take?.(wide[name], narrow[name]) ?? false;
  };
  const demanded = (wide.required ?? []).filter(
    (name: string) => !(narrow.required ?? []).includes(name),
  );
  return [
    ...keywords
      .filter((name) => !isTaken(name))
      .flatMap((name) => difference(name, old, now, where)),
    ...changes(
      old.properties,
      now.properties,
      `${where}.`,
      (member, still, place) => schemaChanges(isRequest, member, still, place),
    ),
    ...demanded.map(
      (name: string) =>
        `${where}.${name} is now ${isRequest ? 'required' : 'optional'}`,
    ),
    ...(old.items && now.items
      ? schemaChanges(isRequest, old.items, now.items, `each of ${where}`)
      : []),
  ];
}

/**
 * Replaces the references of the document with their schemas; no schema
 * contains itself. Members beside a reference, which OpenAPI 3.1 allows, take
 * precedence.
 */
function withoutReferences(document: Json, value: Json = document): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value))
    return value.map((one) => withoutReferences(document, one));
  const { $ref, ...beside } = value;
  const path: string[] =
    typeof $ref === 'string' ? $ref.slice(2).split('/') : [];
  const target = path.reduce(
    (node, key) => node?.[key.replace(/~1/g, '/').replace(/~0/g, '~')],
    document,
  );
  const members = Object.entries(beside).map(([name, one]) => [
    name,
    withoutReferences(document, one),
  ]);
  return {
    ...(path.length > 0 && withoutReferences(document, target)),
    ...Object.fromEntries(members),
  };
}
