import { inspect } from 'node:util';
import { GraphQLError, GraphQLID, GraphQLScalarType, Kind } from 'graphql';

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
    throw new GraphQLError(`ID cannot represent value: ${inspect(value)}`);
  },
  parseLiteral: (node) => {
    if (node.kind === Kind.STRING) return node.value;
    // As a JSON number, -0 is 0 as well.
    if (node.kind === Kind.INT) return node.value === '-0' ? '0' : node.value;
    throw new GraphQLError('ID cannot represent a non-string and non-integer value.', { nodes: node });
  },
});
