import { inspect } from 'node:util';
import { GraphQLError, GraphQLID, GraphQLScalarType, Kind } from 'graphql';

/**
 * GraphQL's `ID`, made to take and give the program's `bigint`: graphql-js's own refuses one in both directions.
 * On the wire it is what it always is, a string out, a string or an integer in (GraphQL specification, section 3.5.5).
 */
export const ID = new GraphQLScalarType<string, string>({
  name: GraphQLID.name,
  description: GraphQLID.description,
  serialize: (value) => `${value}`,
  parseValue: (value) => {
    if (typeof value === 'string') return value;
    // A number beyond 2^53 would have lost digits; the service's own parser makes a bigint of it.
    if (typeof value === 'bigint' || Number.isSafeInteger(value)) return `${value}`;
    throw new GraphQLError(`ID cannot represent value: ${inspect(value)}`);
  },
  parseLiteral: (node) => {
    if (node.kind === Kind.STRING) return node.value;
    // As a JSON number it is 0, too.
    if (node.kind === Kind.INT) return node.value === '-0' ? '0' : node.value;
    throw new GraphQLError('ID cannot represent a non-string and non-integer value.', { nodes: node });
  },
});
