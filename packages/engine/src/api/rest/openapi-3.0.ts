import { isRecord } from '@animal-store/exact-json';
import { mapMembers } from '../../validation/schemas.ts';

/**
 * The same contract in OpenAPI 3.0, the version of the specification, for
 * generators that do not read 3.1.
 */
export function toOpenApi30(document: object): object {
  return { ...(older(document) as object), openapi: '3.0.3' };
}

/** Members that hold data. */
const data = new Set(['default', 'enum', 'example']);
/** Members that map names to parts. */
const maps = new Set(['properties', 'schemas', 'responses', 'headers']);

function older(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(older);
  if (!isRecord(part)) return part;
  const { $ref, ...beside } = part;
  // Members beside a reference do not count in 3.0.
  if ($ref && Object.keys(beside).length > 0)
    return older({ allOf: [{ $ref }], ...beside });
  const members = {};
  for (const [name, value] of Object.entries(part))
    Object.assign(members, olderMember(name, value));
  return members;
}

function olderMember(name: string, value: unknown) {
  if (data.has(name)) return { [name]: value };
  if (maps.has(name)) return { [name]: mapMembers(value as never, older) };
  const replaced = olderMembers[name]?.(value as never);
  return replaced ?? { [name]: older(value) };
}

/**
 * What OpenAPI 3.0 has in place of members of 3.1. Other members are the same
 * in both.
 */
const olderMembers: Record<string, (value: never) => object> = {
  type(types: string | string[]) {
    if (!Array.isArray(types)) return { type: types };
    return { type: types.find((one) => one !== 'null'), nullable: true };
  },
  anyOf(parts: Array<{ type?: string }>) {
    const others = parts.filter(({ type }) => type !== 'null');
    const name = others.length > 1 ? 'anyOf' : 'allOf';
    const mayBeNull = others.length < parts.length;
    return { [name]: older(others), ...(mayBeNull && { nullable: true }) };
  },
  const: (value: unknown) => ({ enum: [value] }),
  examples: ([example]: unknown[]) => ({ example }),
  exclusiveMinimum: (minimum: number) => ({ minimum, exclusiveMinimum: true }),
  exclusiveMaximum: (maximum: number) => ({ maximum, exclusiveMaximum: true }),
  identifier: (name: string) => ({
    url: `https://spdx.org/licenses/${name}.html`,
  }),
};
