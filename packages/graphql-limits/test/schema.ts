import { assertCosts } from '@animal-store/graphql-limits/cost';
import {
  buildSchema,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';

/** Pets and their toys, with graphql-js alone. */
export const schema = buildSchema(`
  interface Node { id: ID }
  type Toy implements Node { id: ID, name: String, owner: Pet, parts: [Toy] }
  type Pet implements Node { id: ID, toys(first: Int): [Toy], tags: [String] }
  type Pets { total: Int, count: Int, edges: [Edge], nodes: [Pet] }
  type Edge { cursor: ID, node: Pet }
  type Query { pets(limit: Int): [Pet], pet: Pet, node: Node, page(first: Int): Pets }
  type Subscription { added: Pet }
`);

/** Gives a field a resolver. */
export function resolve(
  schema: GraphQLSchema,
  type: string,
  name: string,
): void {
  const field = (schema.getType(type) as GraphQLObjectType).getFields()[name];
  if (field) field.resolve = () => null;
}
resolve(schema, 'Toy', 'owner');
resolve(schema, 'Pet', 'toys');
resolve(schema, 'Pets', 'count');
assertCosts(schema);
