import { type Json, schemaChanges, withoutReferences } from './schema-changes.ts';

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/**
 * What breaks clients between two OpenAPI documents. There is no maintained package for it that works offline and knows
 * OpenAPI 3.1; this one knows as much of it as this service uses, and calls what it cannot judge a break.
 *
 * @returns one sentence per breaking change; none when every client of the one is a client of the other
 */
export function breakingOpenApiChanges(older: Json, newer: Json): string[] {
  const [before, after] = [withoutReferences(older), withoutReferences(newer)];
  const found: string[] = [];
  for (const { url } of before.servers ?? []) {
    if (!after.servers?.some((server: Json) => server.url === url)) found.push(`the address ${url} was removed`);
  }
  for (const name of Object.keys(before.components?.schemas ?? {})) {
    if (!after.components?.schemas?.[name]) found.push(`the schema ${name} was removed`);
  }
  for (const [name, scheme] of Object.entries<Json>(before.components?.securitySchemes ?? {})) {
    const now = after.components?.securitySchemes?.[name] ?? {};
    if (now.type !== scheme.type || now.scheme !== scheme.scheme) found.push(`the security scheme ${name} has changed`);
  }
  for (const [path, item] of Object.entries<Json>(before.paths ?? {})) {
    for (const method of methods.filter((one) => item[one])) {
      const operation = `${method.toUpperCase()} ${path}`;
      const newItem = after.paths?.[path] ?? {};
      if (!newItem[method]) found.push(`${operation} was removed`);
      const [old, now] = [operationOf(before, item, method), operationOf(after, newItem, method)];
      if (now) found.push(...operationChanges(old, now).map((what) => `${operation}: ${what}`));
    }
  }
  return [...new Set(found)];
}

/** An operation with the parameters of its path and the credentials of its document. */
function operationOf({ security }: Json, { parameters = [], ...item }: Json, method: string): Json {
  const operation = item[method];
  return operation && { security, ...operation, parameters: [...parameters, ...(operation.parameters ?? [])] };
}

function operationChanges(old: Json, now: Json): string[] {
  const found: string[] = [];
  if (old.operationId !== now.operationId) {
    found.push(`its operationId was ${old.operationId} and is now ${now.operationId}`);
  }
  if (JSON.stringify(old.security) !== JSON.stringify(now.security)) found.push('it asks for other credentials');
  return [
    ...found,
    ...parameterChanges(byName(old.parameters), byName(now.parameters)),
    ...requestChanges(old.requestBody ?? {}, now.requestBody ?? {}),
    ...responseChanges(old.responses ?? {}, now.responses ?? {}),
  ];
}

function byName(parameters: Json[]): Map<string, Json> {
  return new Map(parameters.map((parameter) => [`${parameter.in} parameter ${parameter.name}`, parameter]));
}

function parameterChanges(before: Map<string, Json>, after: Map<string, Json>): string[] {
  const found: string[] = [];
  for (const [name, old] of before) {
    const now = after.get(name);
    if (!now) found.push(`the ${name} was removed`);
    else {
      if (now.required && !old.required) found.push(`the ${name} is now required`);
      found.push(...schemaChanges('request', old.schema, now.schema, `the ${name}`));
    }
  }
  for (const [name, { required }] of after) {
    if (required && !before.has(name)) found.push(`the new ${name} is required`);
  }
  return found;
}

function requestChanges(old: Json, now: Json): string[] {
  const found: string[] = [];
  if (now.required && !old.required) found.push('a body is now required');
  for (const [type, { schema }] of Object.entries<Json>(old.content ?? {})) {
    if (!now.content?.[type]) found.push(`a body of ${type} is no longer taken`);
    else found.push(...schemaChanges('request', schema, now.content[type].schema, 'the body'));
  }
  return found;
}

function responseChanges(before: Json, after: Json): string[] {
  const found: string[] = [];
  for (const [status, old] of Object.entries<Json>(before)) {
    const [where, now] = [`the response ${status}`, after[status]];
    if (!now) found.push(`${where} was removed`);
    for (const header of Object.keys((now && old.headers) ?? {})) {
      if (!now.headers?.[header]) found.push(`the header ${header} of ${where} was removed`);
    }
    for (const [type, { schema }] of Object.entries<Json>((now && old.content) ?? {})) {
      if (!now.content?.[type]) found.push(`${where} is no longer ${type}`);
      else found.push(...schemaChanges('response', schema, now.content[type].schema, where));
    }
  }
  const success = (status: string) => status.startsWith('2');
  for (const status of Object.keys(after).filter(success)) {
    if (!before[status] && Object.keys(before).some(success)) found.push(`it may now succeed with ${status}`);
  }
  return found;
}
