import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { HttpRequest, HttpResponse } from './http.ts';

/** An OpenAPI document that responses are held against. */
export class Contract {
  readonly #document: { paths: object };
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #validators = new Map<string, ReturnType<Ajv2020['compile']>>();

  constructor(document: { paths: object }) {
    this.#document = document;
    (formats as unknown as (instance: Ajv2020) => void)(this.#ajv);
    this.#ajv.addSchema(document, 'openapi');
  }

  /**
   * Fails when a response is not what the document says: an undocumented status of a documented operation, a body that
   * does not fit its schema, or a failure anywhere that is no Error body. The REST test client calls it on every response.
   * Outside of the APIs, a browser gets 401 and 404 as a page.
   */
  assert(
    { method = 'GET', path, headers: requested = {} }: HttpRequest,
    { status, headers, text }: HttpResponse,
  ): void {
    const place = `${method} ${path} -> ${status} ${text.slice(0, 300)}`;
    if (method === 'HEAD' || status === 204) {
      assert(text === '', `${place}: has a body`);
      return;
    }
    if (status === 304) {
      assert(
        text === '' && this.#operationOf(method, path)?.responses[304],
        `${place}: has a body, or is not documented`,
      );
      return;
    }
    const isForBrowser = /text\/html/.test(`${requested.accept ?? ''}`) && !/^\/(?:v1|graphql)\b/.test(path);
    if (isForBrowser && (status === 401 || status === 404) && headers['content-type'] === 'text/html; charset=utf-8') {
      assert(text.startsWith('<!doctype html>') && /Accept/.test(headers.vary ?? ''), `${place}: is not the page`);
      return;
    }
    assert(/^application\/json\b/.test(headers['content-type'] ?? ''), `${place}: is not JSON`);
    const body: unknown = JSON.parse(text);
    if (status >= 400) this.#assertFits('#/components/schemas/Error', body, place);
    if (status >= 400)
      assert((body as { status: number }).status === status, `${place}: status differs from the body's`);
    const operation = this.#operationOf(method, path);
    if (!operation) {
      assert(status >= 400, `${place}: is not documented`);
      return;
    }
    const unlisted = [405, 408, 431].includes(status);
    assert(unlisted || operation.responses[status], `${place}: this status is not documented`);
    if (status < 400)
      this.#assertFits(operation.responses[status].content['application/json'].schema.$ref, body, place);
  }

  #operationOf(method: string, path: string): (Operation & { responses: Record<number, any> }) | undefined {
    const pathname = path.split('?', 1)[0] ?? '';
    for (const [template, operations] of Object.entries<any>(this.#document.paths)) {
      const pattern = new RegExp(`^/v1${template.replace(/\{\w+\}/g, '[^/]+')}$`);
      if (pattern.test(pathname)) return operations[method.toLowerCase()];
    }
    return undefined;
  }

  #assertFits(reference: string, body: unknown, place: string): void {
    const fits = this.#validators.get(reference) ?? this.#ajv.compile({ $ref: `openapi${reference}` });
    this.#validators.set(reference, fits);
    assert(fits(body), `${place}: ${this.#ajv.errorsText(fits.errors)}`);
  }
}

/** The one in schema/. */
export const committed = new Contract(JSON.parse(readFileSync('schema/openapi.json', 'utf8')));

interface Operation {
  responses: Record<string, { content: { 'application/json': { schema: { $ref: string } } } }>;
}

function assert(condition: unknown, message: string): void {
  if (!condition) throw new Error(`Contract violated: ${message}`);
}
