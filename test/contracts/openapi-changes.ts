import { type Direction, type Documents, type Json, resolved, SchemaChanges } from './schema-changes.ts';

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/**
 * What breaks clients between two OpenAPI documents. There is no maintained package for it that works offline and knows
 * OpenAPI 3.1; this one knows as much of it as this service uses, and calls what it cannot judge a break.
 *
 * @returns one sentence per breaking change; none when every client of the one is a client of the other
 */
export function breakingOpenApiChanges(before: Json, after: Json): string[] {
  const documents = { before, after };
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
      const now = after.paths?.[path]?.[method];
      if (!now) found.push(`${operation} was removed`);
      else
        found.push(
          ...operationChanges(documents, item, after.paths[path], method).map((what) => `${operation}: ${what}`),
        );
    }
  }
  return [...new Set(found)];
}

function operationChanges(documents: Documents, oldItem: Json, newItem: Json, method: string): string[] {
  const [old, now] = [oldItem[method], newItem[method]];
  const found: string[] = [];
  if (old.operationId !== now.operationId)
    found.push(`its operationId was ${old.operationId} and is now ${now.operationId}`);
  const [before, after] = [old.security ?? documents.before.security, now.security ?? documents.after.security];
  if (JSON.stringify(before) !== JSON.stringify(after)) found.push('it asks for other credentials');
  return [
    ...found,
    ...parameterChanges(
      documents,
      parametersOf(documents.before, oldItem, old),
      parametersOf(documents.after, newItem, now),
    ),
    ...requestChanges(
      documents,
      resolved(documents.before, old.requestBody),
      resolved(documents.after, now.requestBody),
    ),
    ...responseChanges(documents, old.responses ?? {}, now.responses ?? {}),
  ];
}

function parametersOf(document: Json, item: Json, operation: Json): Map<string, Json> {
  const all = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((one) => resolved(document, one));
  return new Map(all.map((parameter) => [`${parameter.in} parameter ${parameter.name}`, parameter]));
}

function parameterChanges(documents: Documents, before: Map<string, Json>, after: Map<string, Json>): string[] {
  const found: string[] = [];
  for (const [name, old] of before) {
    const now = after.get(name);
    if (!now) found.push(`the ${name} was removed`);
    else {
      if (now.required && !old.required) found.push(`the ${name} is now required`);
      found.push(...compared(documents, 'request', old.schema, now.schema, `the ${name}`));
    }
  }
  for (const [name, { required }] of after) {
    if (required && !before.has(name)) found.push(`the new ${name} is required`);
  }
  return found;
}

function requestChanges(documents: Documents, old: Json, now: Json): string[] {
  const found: string[] = [];
  if (now.required && !old.required) found.push('a body is now required');
  for (const [type, { schema }] of Object.entries<Json>(old.content ?? {})) {
    if (!now.content?.[type]) found.push(`a body of ${type} is no longer taken`);
    else found.push(...compared(documents, 'request', schema, now.content[type].schema, 'the body'));
  }
  return found;
}

function responseChanges(documents: Documents, before: Json, after: Json): string[] {
  const found: string[] = [];
  for (const status of Object.keys(before)) {
    const [old, now] = [
      resolved(documents.before, before[status]),
      after[status] && resolved(documents.after, after[status]),
    ];
    if (!now) {
      found.push(`the response ${status} was removed`);
      continue;
    }
    for (const header of Object.keys(old.headers ?? {})) {
      if (!now.headers?.[header]) found.push(`the header ${header} of the response ${status} was removed`);
    }
    for (const [type, { schema }] of Object.entries<Json>(old.content ?? {})) {
      const where = `the response ${status}`;
      if (!now.content?.[type]) found.push(`${where} is no longer ${type}`);
      else found.push(...compared(documents, 'response', schema, now.content[type].schema, where));
    }
  }
  const success = (status: string) => status.startsWith('2');
  for (const status of Object.keys(after).filter(success)) {
    if (!before[status] && Object.keys(before).some(success)) found.push(`it may now succeed with ${status}`);
  }
  return found;
}

function compared(documents: Documents, direction: Direction, before: Json, after: Json, where: string): string[] {
  const changes = new SchemaChanges(documents, direction);
  changes.compare(before ?? {}, after ?? {}, where);
  return changes.found;
}
