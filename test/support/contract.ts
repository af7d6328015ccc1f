import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { HttpRequest, HttpResponse } from './http.ts';

interface OpenApiDocument {
  paths: object;
  components: { responses: Record<string, object> };
}

/** Replaces references to the failures that several operations share. */
function writtenOut(document: OpenApiDocument): OpenApiDocument {
  const { responses } = document.components;
  const text = JSON.stringify(document.paths).replace(
    /\{"\$ref":"#\/components\/responses\/(\w+)"\}/g,
    (_, name) => JSON.stringify(responses[name]),
  );
  return { ...document, paths: JSON.parse(text) };
}

/** Validates responses against an OpenAPI document. */
export class Contract {
  readonly #document: OpenApiDocument;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #validators = new Map<string, ReturnType<Ajv2020['compile']>>();

  constructor(document: OpenApiDocument) {
    this.#document = writtenOut(document);
    (formats as unknown as (instance: Ajv2020) => void)(this.#ajv);
    this.#ajv.addSchema(document, 'openapi');
  }

  /**
   * Throws when a response violates the document: an undocumented status of a
   * documented operation, a body that does not fit its schema, or a failure on
   * any path without an Error body. The REST test client calls it on each
   * response. Outside of the APIs, a browser gets 401 and 404 as a page.
   */
  assert(
    { method = 'GET', path, headers: requested = {} }: HttpRequest,
    { status, headers, text }: HttpResponse,
  ): true {
    const check = (condition: unknown, message: string): true => {
      if (!condition)
        throw new Error(
          `Contract violated: ${method} ${path} -> ${status} ${text.slice(0, 300)}: ${message}`,
        );
      return true;
    };
    const operation = this.#operationOf(method, path);
    const documented = operation?.responses[status];
    const isDocumented = !operation || documented?.headers?.RateLimit;
    check(
      headers.ratelimit === undefined || isDocumented,
      'RateLimit is not documented',
    );
    if (method === 'HEAD' || status === 204)
      return check(text === '', 'has a body');
    if (status === 304)
      return check(
        text === '' && documented,
        'has a body, or is not documented',
      );
    const isForBrowser =
      /text\/html/.test(`${requested.accept ?? ''}`) &&
      !/^\/(?:v1|graphql)\b/.test(path);
    if (
      isForBrowser &&
      (status === 401 || status === 404) &&
      headers['content-type'] === 'text/html; charset=utf-8'
    ) {
      return check(
        text.startsWith('<!doctype html>') && /Accept/.test(headers.vary ?? ''),
        'is not the page',
      );
    }
    check(
      /^application\/json\b/.test(headers['content-type'] ?? ''),
      'is not JSON',
    );
    const body = JSON.parse(text);
    const fits = (reference: string) => {
      const validate =
        this.#validators.get(reference) ??
        this.#ajv.compile({ $ref: `openapi${reference}` });
      this.#validators.set(reference, validate);
      return check(validate(body), this.#ajv.errorsText(validate.errors));
    };
    if (status >= 400) {
      fits('#/components/schemas/Error');
      check(body.status === status, "status differs from the body's");
      const isUnlisted = !operation || [405, 408, 431].includes(status);
      return check(isUnlisted || documented, 'this status is not documented');
    }
    check(documented, 'is not documented');
    return fits(documented.content['application/json'].schema.$ref);
  }

  #operationOf(
    method: string,
    path: string,
  ): { responses: Record<number, any> } | undefined {
    const pathname = path.split('?', 1)[0] ?? '';
    for (const [template, operations] of Object.entries<any>(
      this.#document.paths,
    )) {
      const pattern = new RegExp(
        `^/v1${template.replace(/\{\w+\}/g, '[^/]+')}$`,
      );
      if (pattern.test(pathname)) return operations[method.toLowerCase()];
    }
    return undefined;
  }
}

const document = writtenOut(
  JSON.parse(readFileSync('schema/openapi.json', 'utf8')),
);

/** The contract of the document in schema/. */
export const committed = new Contract(document);

/** The operations of the document in schema/, with their methods. */
export const operations = Object.values<object>({ ...document.paths }).flatMap(
  (path) =>
    Object.entries(path).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
    })),
);

/**
 * The methods that browsers may use, with those of further operations. GraphQL
 * has POST.
 */
export function browserMethods(...more: string[]): string {
  const methods = [
    'GET',
    'HEAD',
    'POST',
    ...operations.map(({ method }) => method),
    ...more,
  ];
  return [...new Set(methods)].sort().join(', ');
}
