import type { FastifyInstance } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Execute } from './context.ts';
import type { Operation } from './document.ts';
import type { Pipeline } from './pipeline.ts';
import type { FindDocument } from './request.ts';
import type { References } from './schema.ts';

/** What features change of the GraphQL API; at most one has each. */
export interface GraphQLParts {
  /** Adds to the schema of the modules. */
  schema?(schema: GraphQLSchema, references: References): GraphQLSchema;
  /** Finds the document that a request names, or refuses it. */
  findDocument?: FindDocument;
  /** Whether the operator has registered all documents, and so their names. */
  isTrusted?: boolean;
  /** Prepares executions. @param interpret those of graphql-js */
  executor?(
    schema: GraphQLSchema,
    interpret: (operation: Operation) => Execute,
  ): (operation: Operation) => Execute;
  /** Answers in place of the pipeline, by its steps. */
  answer?(
    pipeline: Pipeline,
    app: FastifyInstance,
  ): Promise<Pipeline['answer']>;
}
