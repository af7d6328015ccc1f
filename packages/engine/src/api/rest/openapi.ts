import { isRecord } from '@animal-store/exact-json';
import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../../config/config.ts';
import { reportFault, reportThrown } from '../../errors.ts';
import { shownInJson } from '../../validation/int64.ts';
import type { MemberSchema } from '../../validation/rules.ts';
import { mapMembers } from '../../validation/schemas.ts';
import { serveDocument } from '../http/documents.ts';
import type { Routes } from '../http/routes.ts';
import type { Response } from './documented-responses.ts';
import { offerEvents } from './responses.ts';

type Described = Pick<Config, 'about' | 'version' | 'license'>;

function infoOf({ about, version, license: name = '' }: Described) {
  // npm's words for what is no SPDX expression.
  const isLicensed = name && !/^(?:UNLICENSED|SEE LICENSE)/.test(name);
  return {
    title: about.title,
    version,
    description: `${about.description} Every operation needs an API key.`,
    ...(isLicensed && { license: { name, identifier: name } }),
  };
}

/** In OpenAPI 3.0 a licence has no identifier. */
function olderInfo({ license, ...info }: ReturnType<typeof infoOf>) {
  if (!license) return info;
  const { name } = license;
  const url = `https://spdx.org/licenses/${name}.html`;
  return { ...info, license: { name, url } };
}

const server = { url: '/v1', description: 'This service' };
/**
 * The address in the committed contract, which is that of no service: the
 * variable of the specification.
 */
export const anyServer = {
  url: '{base_url}',
  variables: {
    base_url: {
      default: 'http://127.0.0.1:4000/v1',
      description: 'The address of the service',
    },
  },
};

/**
 * Collects the routes' schemas into OpenAPI: `/v1/openapi.json` (3.1) and
 * `/v1/openapi-3.0.json`, which need no key and name the address that was
 * asked, because importers do not resolve `/v1`. Register it before the routes.
 */
export async function openApi(
  app: FastifyInstance,
  config: Described,
  tags: Array<{ name: string; description: string }>,
) {
  const info = infoOf(config);
  app.decorate('info', info);
  app.decorate('namedSchemas', new Map());
  const collect = (
    decorator: 'swagger' | 'olderSwagger',
    openapi: string,
    change: (part: MemberSchema) => object,
  ) =>
    app.register(swagger, {
      decorator,
      openapi: {
        openapi,
        info,
        servers: [server],
        tags,
        components: {
          securitySchemes: {
            apiKey: {
              type: 'http',
              scheme: 'bearer',
              description: '`Authorization: Bearer <API_KEY>`',
            },
          },
        },
        security: [{ apiKey: [] }],
      },
      stripBasePath: true,
      hideUntagged: true,
      // Names the components by their `$id`, as the specification does.
      refResolver: {
        buildLocalReference: ({ $id }) => `${$id}`,
      },
      transform: ({ schema, url }) => ({
        schema: byReference(app, schema),
        url,
      }),
      transformObject: (document) =>
        'openapiObject' in document
          ? withSharedFailures(eachPart(document.openapiObject, change))
          : document.swaggerObject,
    });
  await collect('swagger', '3.1.0', withPlainReference);
  await collect('olderSwagger', '3.0.3', asOlder);
  // Responses are serialised by reference, too, because the serialiser
  // accepts each named schema only once.
  const operations = new Map<string, string>();
  app.addHook('onRoute', ({ schema, method, url }) => {
    if (!schema) return;
    const { operationId, summary } = schema;
    // Fastify adds a HEAD route to each GET route.
    if (operationId && method !== 'HEAD') {
      const route = `${method} ${url}`;
      if (!summary) reportFault(`${route} needs a summary.`);
      const other = operations.get(operationId);
      if (other)
        reportFault(
          `${other} and ${route} have the same operationId ${operationId}.`,
        );
      operations.set(operationId, route);
    }
    byReference(app, schema.querystring);
    byReference(app, schema.body);
    if (schema.response) schema.response = byReference(app, schema.response);
  });
  const headers = { 'content-type': 'application/json; charset=utf-8' };
  const serve = (path: string, documentOf: () => object) => {
    const textOf = (address: string) => {
      const servers = [{ ...server, url: address + server.url }];
      return JSON.stringify({ ...documentOf(), servers });
    };
    serveDocument(app, path, textOf, headers);
  };
  serve('/v1/openapi.json', () => app.swagger());
  serve('/v1/openapi-3.0.json', () => ({
    ...app.olderSwagger(),
    info: olderInfo(info),
  }));
}

/** Adds the named schemas of a part, and replaces them with references. */
function byReference<Part>(app: FastifyInstance, part: Part): Part {
  return eachPart(part, (plain: { $id?: unknown }) => {
    const { $id } = plain;
    if (typeof $id !== 'string') return plain;
    const other = app.namedSchemas.get($id);
    if (!other) {
      app.namedSchemas.set($id, plain);
      app.addSchema(eachPart(plain, readable));
    } else if (JSON.stringify(other) !== JSON.stringify(plain))
      reportFault(`Two different schemas have the $id ${$id}.`);
    return { $ref: `${$id}#` };
  });
}

/** Without a type null is a value anyway, and Ajv refuses the mark. */
function readable(part: MemberSchema) {
  const { nullable, ...others } = part;
  return nullable === true && !part.type ? others : part;
}

/**
 * `use` creates an `allOf` of a single reference, and more members beside it.
 * OpenAPI 3.1 allows these beside `$ref` itself, which generators understand
 * better, but @fastify/swagger drops them there (as 3.0 requires).
 */
function withPlainReference(plain: MemberSchema) {
  const { allOf = [], ...rest } = plain;
  const [reference, ...others] = allOf as MemberSchema[];
  const isOnlyReference = reference?.$ref && others.length === 0;
  return isOnlyReference ? { ...reference, ...rest } : plain;
}

/**
 * In OpenAPI 3.0 members beside a reference do not count, an exclusive bound is
 * a flag beside the bound, and null is a flag, too.
 */
function asOlder(plain: MemberSchema) {
  const { exclusiveMinimum: above, exclusiveMaximum: below, anyOf } = plain;
  const isAlone = Object.keys(plain).length === 1;
  if (isAlone) return withPlainReference(plain);
  const [reference, ...others] = (anyOf ?? []) as MemberSchema[];
  const isOrNull = others.length === 1 && others[0]?.enum?.[0] === null;
  return {
    ...plain,
    ...(isOrNull && { anyOf: undefined, allOf: [reference], nullable: true }),
    ...(Number.isFinite(above) && { minimum: above, exclusiveMinimum: true }),
    ...(Number.isFinite(below) && { maximum: below, exclusiveMaximum: true }),
  };
}

/** Changes each object of a document, the inner ones first. */
function eachPart<Part>(part: Part, change: (part: object) => object): Part {
  if (Array.isArray(part))
    return part.map((one) => eachPart(one, change)) as Part;
  if (!isRecord(part)) return shownInJson('', part) as Part;
  const members = mapMembers(part, (member) => eachPart(member, change));
  // The part may carry symbols.
  return change({ ...part, ...members }) as Part;
}

type Operation = { responses: Record<string, object> };
type Paths = Record<string, Record<string, Operation>>;

/**
 * Describes a failure that several operations have once, in
 * `components/responses`, by its code.
 */
function withSharedFailures<
  Document extends { paths?: object; components?: object },
>(document: Document): Document {
  const paths = Object.values({ ...document.paths } as Paths);
  const operations = paths.flatMap((path) => Object.values(path));
  const failures = operations.flatMap(({ responses }) => {
    const statuses = Object.keys(responses).filter((one) => /^[45]/.test(one));
    return statuses.map((status) => ({ responses, status }));
  });
  const uses = Map.groupBy(failures, ({ responses, status }) =>
    JSON.stringify(responses[status]),
  );
  const shared: Record<string, Response> = {};
  for (const [text, places] of uses) {
    if (places.length === 1) continue;
    const failure = JSON.parse(text);
    const name = failureName(failure, shared);
    shared[name] = failure;
    const $ref = `#/components/responses/${name}`;
    for (const { responses, status } of places) responses[status] = { $ref };
  }
  const components = { ...document.components, responses: shared };
  return { ...document, components };
}

/** `NotFound`; `NotFound2` for a second one. */
function failureName({ content }: Response, taken: object) {
  const error = content?.['application/json']?.example;
  const { code = '' } = error as { code?: string };
  const first = code
    .toLowerCase()
    .replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase());
  let name = first;
  for (let next = 2; name in taken; next += 1) name = first + next;
  return name;
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The contract in OpenAPI 3.0. */
    olderSwagger: FastifyInstance['swagger'];
    /** The title and description of the service. */
    info: ReturnType<typeof infoOf>;
    /** Schemas of the contract by their `$id`, with what their symbols say. */
    namedSchemas: Map<string, object>;
    /** The section of the reference; undefined for routes outside of it. */
    section?: string;
  }
}

/** Registers the routes of a module in its section of the reference. */
export function section(tag: string, routes: (app: Routes) => void) {
  return async (app: FastifyInstance) => {
    app.section = tag;
    app.addHook('onRoute', offerEvents);
    reportThrown(() => routes(app as unknown as Routes));
  };
}
