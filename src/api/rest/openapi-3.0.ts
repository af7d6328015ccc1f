/**
 * The same contract in OpenAPI 3.0, the version of the specification, for
 * generators that do not read 3.1.
 */
export function toOpenApi30(document: object): object {
  return { ...(inOlderWords(document) as object), openapi: '3.0.3' };
}

/**
 * What OpenAPI 3.0 has in place of members of 3.1. Other members are the same
 * in both.
 */
const olderMembers: Record<string, (value: never) => object> = {
  type: (type: string | string[]) =>
    Array.isArray(type)
      ? { type: type.find((one) => one !== 'null'), nullable: true }
      : { type },
  anyOf(parts: Array<{ type?: string }>) {
    const others = parts
      .filter(({ type }) => type !== 'null')
      .map((part) => inOlderWords(part));
    return {
      [others.length > 1 ? 'anyOf' : 'allOf']: others,
      ...(others.length < parts.length && { nullable: true }),
    };
  },
  const: (value: unknown) => ({ enum: [value] }),
  examples: ([example]: unknown[]) => ({ example }),
  exclusiveMinimum: (minimum: number) => ({ minimum, exclusiveMinimum: true }),
  exclusiveMaximum: (maximum: number) => ({ maximum, exclusiveMaximum: true }),
  identifier: (name: string) => ({
    url: `https://spdx.org/licenses/${name}.html`,
  }),
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
  const plain =
    $ref && Object.keys(beside).length > 0
      ? { allOf: [{ $ref }], ...beside }
      : part;
  const members = Object.entries(plain).flatMap(([name, value]) => {
    if (isMap) return [[name, inOlderWords(value)]];
    if (data.has(name)) return [[name, value]];
    const older = Object.hasOwn(olderMembers, name)
      ? olderMembers[name]?.(value as never)
      : undefined;
    return older
      ? Object.entries(older)
      : [[name, inOlderWords(value, maps.has(name))]];
  });
  return Object.fromEntries(members);
}
