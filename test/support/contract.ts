import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { HttpRequest, HttpResponse } from './http.ts';

const document = JSON.parse(readFileSync('schema/openapi.json', 'utf8'));
const ajv = new Ajv2020({ strict: false, allErrors: true });
(formats as unknown as (instance: Ajv2020) => void)(ajv);
ajv.addSchema(document, 'openapi');

const validators = new Map<string, ReturnType<Ajv2020['compile']>>();

/**
 * Fails when a response is not what `schema/openapi.json` says: an undocumented status of a documented operation, a
 * body that does not fit its schema, or a failure anywhere that is no Error body. The REST test client calls it on
 * every response.
 */
export function assertContract({ method = 'GET', path }: HttpRequest, { status, headers, text }: HttpResponse): void {
  const place = `${method} ${path} -> ${status} ${text.slice(0, 300)}`;
  if (method === 'HEAD' || status === 204) {
    assert(text === '', `${place}: has a body`);
    return;
  }
  assert(/^application\/json\b/.test(headers['content-type'] ?? ''), `${place}: is not JSON`);
  const body: unknown = JSON.parse(text);
  if (status >= 400) assertFits('#/components/schemas/Error', body, place);
  if (status >= 400) assert((body as { status: number }).status === status, `${place}: status differs from the body's`);
  const operation = operationOf(method, path);
  if (!operation) {
    assert(status >= 400, `${place}: is not documented`);
    return;
  }
  const unlisted = [405, 408, 417, 431].includes(status);
  assert(unlisted || operation.responses[status], `${place}: this status is not documented`);
  if (status < 400) assertFits(operation.responses[status].content['application/json'].schema.$ref, body, place);
}

interface Operation {
  responses: Record<string, { content: { 'application/json': { schema: { $ref: string } } } }>;
}

function operationOf(method: string, path: string): (Operation & { responses: Record<number, any> }) | undefined {
  const pathname = path.split('?', 1)[0] ?? '';
  for (const [template, operations] of Object.entries<any>(document.paths)) {
    const pattern = new RegExp(`^/v1${template.replace(/\{\w+\}/g, '[^/]+')}$`);
    if (pattern.test(pathname)) return operations[method.toLowerCase()];
  }
  return undefined;
}

function assertFits(reference: string, body: unknown, place: string): void {
  const fits = validators.get(reference) ?? ajv.compile({ $ref: `openapi${reference}` });
  validators.set(reference, fits);
  assert(fits(body), `${place}: ${ajv.errorsText(fits.errors)}`);
}

function assert(condition: unknown, message: string): void {
  if (!condition) throw new Error(`Contract violated: ${message}`);
}
