import { inspect } from 'node:util';
import { GraphQLError, GraphQLID, GraphQLScalarType, Kind, print, type ValueNode } from 'graphql';

/**
 * GraphQL's `ID`, extended to accept and return `bigint`, which graphql-js's own rejects in both directions. On the
 * wire it is unchanged: a string in responses, a string or an integer in requests (GraphQL specification, section
 * 3.5.5).
 */
export const ID = new GraphQLScalarType<string, string>({
  name: GraphQLID.name,
  description: GraphQLID.description,
  serialize: (value) => `${value}`,
  parseValue: (value) => {
    if (typeof value === 'string') return value;
    // A number beyond 2^53 would have lost digits. The service's own parser returns a bigint instead.
    if (typeof value === 'bigint' || Number.isSafeInteger(value)) return `${value}`;
    throw refusal(inspect(value));
  },
  parseLiteral: (node) => {
    if (node.kind === Kind.STRING) return node.value;
    // As a JSON number, -0 is 0 as well.
    if (node.kind === Kind.INT) return node.value === '-0' ? '0' : node.value;
    throw refusal(print(node), node);
  },
});

function refusal(found: string, nodes?: ValueNode): GraphQLError {
  const message = `ID cannot represent value: ${found}. It must be a string, or an integer in plain digits.`;
  return new GraphQLError(message, nodes && { nodes });
}
