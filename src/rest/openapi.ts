import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { Type } from 'typebox';

/** Collects the routes' schemas into OpenAPI 3.1. Register it before the routes. */
export const openApi = fastifyPlugin(async (app: FastifyInstance) => {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Animal Store',
        version: '1.0.0',
        description: 'The catalogue of animals offered by a store. Every operation needs an API key.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: '/v1', description: 'This service' }],
      tags: [
        { name: 'Pets', description: 'The catalogue of animals.' },
        { name: 'Store', description: 'The store itself.' },
      ],
      components: {
        securitySchemes: {
          apiKey: { type: 'http', scheme: 'bearer', description: '`Authorization: Bearer <API_KEY>`' },
        },
      },
      security: [{ apiKey: [] }],
    },
    stripBasePath: true,
    hideUntagged: true,
    // Names the components as the specification does, by their `$id`.
    refResolver: { buildLocalReference: (schema, _base, _fragment, index) => `${schema.$id ?? `schema-${index}`}` },
    transformObject: (document) =>
      'openapiObject' in document ? withPlainReferences(document.openapiObject) : document.swaggerObject,
  });
});

/**
 * Refers to a named schema, and says more about this use of it. OpenAPI 3.1 allows that beside `$ref`, but @fastify/swagger
 * leaves it out there (as 3.0 asks); so it is `allOf` on the way.
 */
export function referTo<Value>(id: string, more: { description: string; default?: Value }) {
  return Type.Unsafe<Value>({ allOf: [{ $ref: id }], ...more });
}

function withPlainReferences<Part>(part: Part): Part {
  if (typeof part !== 'object' || part === null) return part;
  if (Array.isArray(part)) return part.map(withPlainReferences) as Part;
  const { allOf, ...rest } = part as { allOf?: Array<{ $ref?: string }> };
  const [reference] = allOf?.length === 1 ? allOf : [];
  const plain = reference?.$ref ? { ...reference, ...rest } : part;
  return Object.fromEntries(Object.entries(plain).map(([name, value]) => [name, withPlainReferences(value)])) as Part;
}

/** `/v1/openapi.json`, and `/docs`: an interactive reference served from this process alone. Both need no key. */
export async function openApiPages(app: FastifyInstance): Promise<void> {
  const config = { public: true };
  app.get('/v1/openapi.json', { schema: { hide: true }, config }, async () => app.swagger());
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, ...config };
  });
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    uiConfig: { deepLinking: true, validatorUrl: null, persistAuthorization: false, tryItOutEnabled: true },
    staticCSP: true,
    // Nothing from elsewhere; and on plain HTTP nothing must be looked for at an https address that is not there.
    transformStaticCSP: (policy) =>
      policy
        .replace(/ upgrade-insecure-requests;| validator\.swagger\.io| https:/g, '')
        // Swagger UI colours the answers that it shows with style attributes.
        .replace(/style-src [^;]*/, "style-src 'self' 'unsafe-inline'"),
  });
}
