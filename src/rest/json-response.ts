import { Type } from 'typebox';

/** A documented success: a JSON body of the named schema, with the headers it may carry. */
export function jsonResponse(schemaId: string, description: string, headers: Record<string, object> = {}) {
  return {
    description,
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    content: { 'application/json': { schema: Type.Ref(`${schemaId}#`) } },
  };
}
