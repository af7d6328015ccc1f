import { exact } from '@animal-store/exact-json';
import type { OpenApiMcpOptions } from '@animal-store/openapi-mcp';
import swagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { hasScope } from '../../access/keys/bearer.ts';
import { StoreError } from '../../errors.ts';
import type { Routes } from '../http/input.ts';
import { serveFile } from '../pages/html.ts';

export const info = {
  title: 'Animal Store',
  version: '1.0.0',
  description: 'The catalogue of animals offered by a store. Every operation needs an API key.',
  license: { name: 'MIT', identifier: 'MIT' },
};

export interface OpenApiOptions {
  tags: Array<{ name: string; description: string }>;
}

/**
 * Collects the routes' schemas into OpenAPI: `/v1/openapi.json` (3.1) and `/v1/openapi-3.0.json`, which need no key.
 * Register it before the routes.
 */
export const openApi = fastifyPlugin<OpenApiOptions>(
  async (app: FastifyInstance, { tags }) => {
    await app.register(swagger, {
      openapi: {
        openapi: '3.1.0',
        info,
        servers: [{ url: '/v1', description: 'This service' }],
        tags,
        components: {
          securitySchemes: {
            apiKey: { type: 'http', scheme: 'bearer', description: '`Authorization: Bearer <API_KEY>`' },
          },
        },
        security: [{ apiKey: [] }],
      },
      stripBasePath: true,
      hideUntagged: true,
      // Names the components by their `$id`, as the specification does.
      refResolver: { buildLocalReference: (schema, _base, _fragment, index) => `${schema.$id ?? `schema-${index}`}` },
      transform: ({ schema, url }) => ({ schema: byReference(schema) as FastifySchema, url }),
      transformObject: (document) =>
        'openapiObject' in document ? withPlainReferences(document.openapiObject) : document.swaggerObject,
    });
    // Responses are serialised by reference, too, because the serialiser accepts each named schema only once.
    const operations = new Map<string, string>();
    app.addHook('onRoute', ({ schema, method, url }) => {
      if (!schema) return;
      const { operationId } = schema as { operationId?: string };
      // Fastify adds a HEAD route to each GET route.
      if (operationId && method !== 'HEAD') {
        const other = operations.get(operationId);
        if (other) throw new Error(`${other} and ${method} ${url} have the same operationId ${operationId}.`);
        operations.set(operationId, `${method} ${url}`);
      }
      for (const part of [schema.querystring, schema.body, schema.response]) {
        byReference(part, (named) => {
          const other = app.getSchema(named.$id);
          if (!other) app.addSchema(named);
          else if (JSON.stringify(other) !== JSON.stringify(named)) {
            throw new Error(`Two different schemas have the $id ${named.$id}.`);
          }
        });
      }
      if (schema.response) schema.response = byReference(schema.response);
    });
    serveFile(app, '/v1/openapi.json', () => JSON.stringify(app.swagger()));
    serveFile(app, '/v1/openapi-3.0.json', () => JSON.stringify(toOpenApi30(app.swagger())));
  },
  { name: 'openapi', dependencies: ['routeHooks'] },
);

/** The operations as tools of assistants (@animal-store/openapi-mcp). */
export const assistants: Omit<OpenApiMcpOptions, 'document' | 'origins'> = {
  name: 'animal-store',
  // A tool's own request is charged, and needs its scope.
  config: { scope: 'read', isUnmetered: true, hasOwnChecks: true },
  isListed: ({ responses }, { caller }) => !('403' in responses) || hasScope(caller, 'write'),
  refuse: (status, message) => new StoreError(status === 403 ? 'FORBIDDEN' : 'BAD_USER_INPUT', message),
  describe: ({ code, message }) => `${code}: ${message}`,
  stringify: (value) => JSON.stringify(value, exact),
};

type Named = { $id: string };

/** Replaces named schemas with references. */
function byReference(part: unknown, found: (named: Named) => unknown = () => undefined): unknown {
  if (typeof part !== 'object' || part === null) return part;
  if (Array.isArray(part)) return part.map((one) => byReference(one, found));
  const members = Object.entries(part).map(([name, value]) => [name, byReference(value, found)]);
  const plain = Object.fromEntries(members);
  if (typeof plain.$id !== 'string') return plain;
  found(plain);
  return { $ref: `${plain.$id}#` };
}

/**
 * `use` creates an `allOf` of a single reference, and more members beside it. OpenAPI 3.1 allows these beside `$ref`
 * itself, which generators understand better, but @fastify/swagger drops them there (as 3.0 requires).
 */
function withPlainReferences<Part>(part: Part): Part {
  if (typeof part !== 'object' || part === null) return part;
  if (Array.isArray(part)) return part.map(withPlainReferences) as Part;
  const { allOf, ...rest } = part as { allOf?: Array<{ $ref?: string }> };
  const [reference] = allOf?.length === 1 ? allOf : [];
  const plain = reference?.$ref ? { ...reference, ...rest } : part;
  return Object.fromEntries(Object.entries(plain).map(([name, value]) => [name, withPlainReferences(value)])) as Part;
}

/** The same contract in OpenAPI 3.0, the version of the specification, for generators that do not read 3.1. */
export function toOpenApi30(document: object): object {
  return { ...(inOlderWords(document) as object), openapi: '3.0.3' };
}

/** What OpenAPI 3.0 has in place of members of 3.1. Other members are the same in both. */
const olderMembers: Record<string, (value: never) => object> = {
  type: (type: string | string[]) =>
    Array.isArray(type) ? { type: type.find((one) => one !== 'null'), nullable: true } : { type },
  anyOf(parts: Array<{ type?: string }>) {
    const others = parts.filter(({ type }) => type !== 'null').map((part) => inOlderWords(part));
    return { [others.length > 1 ? 'anyOf' : 'allOf']: others, ...(others.length < parts.length && { nullable: true }) };
  },
  const: (value: unknown) => ({ enum: [value] }),
  examples: ([example]: unknown[]) => ({ example }),
  exclusiveMinimum: (minimum: number) => ({ minimum, exclusiveMinimum: true }),
  exclusiveMaximum: (maximum: number) => ({ maximum, exclusiveMaximum: true }),
  identifier: (name: string) => ({ url: `https://spdx.org/licenses/${name}.html` }),
};
/** Members that hold data, and members that map names to parts. */
const [data, maps] = [
  new Set(['default', 'enum', 'example']),
  new Set(['properties', 'schemas', 'responses', 'headers']),
];

function inOlderWords(part: unknown, isMap = false): unknown {
  if (typeof part !== 'object' || part === null) return part;
  if (Array.isArray(part)) return part.map((one) => inOlderWords(one));
  // Members beside a reference do not count in 3.0.
  const { $ref, ...beside } = part as { $ref?: string };
  const plain = $ref && Object.keys(beside).length > 0 ? { allOf: [{ $ref }], ...beside } : part;
  const members = Object.entries(plain).flatMap(([name, value]) => {
    if (isMap) return [[name, inOlderWords(value)]];
    if (data.has(name)) return [[name, value]];
    const older = Object.hasOwn(olderMembers, name) ? olderMembers[name]?.(value as never) : undefined;
    return older ? Object.entries(older) : [[name, inOlderWords(value, maps.has(name))]];
  });
  return Object.fromEntries(members);
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The section of the reference; undefined for routes outside of it. */
    section?: string;
  }
}

/** Registers the routes of a module in its section of the reference. */
export function section(tag: string, routes: (app: Routes) => void) {
  return async (app: FastifyInstance): Promise<void> => {
    app.section = tag;
    routes(app as unknown as Routes);
  };
}
