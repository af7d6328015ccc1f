import type { GraphQLRequest } from '@apollo/server';
import type { FastifyRequest } from 'fastify';
import { parseExactJson } from '../rest/exact-json.ts';
import { isRead } from './http.ts';
import { type TrustedDocuments, trustedDocumentOf } from './trusted-documents.ts';

/** What Apollo Server is to take instead of what it read from a request itself. */
export interface Reading {
  variables?: Record<string, unknown>;
  document?: string;
}

declare module 'fastify' {
  interface FastifyRequest {
    reading: Reading | null;
  }
}

/** @throws StoreError BAD_USER_INPUT, OPERATION_NOT_TRUSTED */
export function readingOf(request: FastifyRequest, trusted: TrustedDocuments | undefined): Reading {
  const reading: Reading = {};
  if (trusted) reading.document = trustedDocumentOf(trusted, request);
  // Apollo reads the variables of a GET request with JSON.parse, which loses digits of an int64.
  const { variables } = request.query as { variables?: unknown };
  if (isRead(request.method) && typeof variables === 'string') {
    reading.variables = parseExactJson(Buffer.from(variables), 'The variables are') as Record<string, unknown>;
  }
  return reading;
}

/** Hands the reading to Apollo Server before it works with its own. */
export function useReading(graphqlRequest: GraphQLRequest, { reading }: FastifyRequest): void {
  if (!reading) return;
  if (reading.variables) graphqlRequest.variables = reading.variables;
  if (reading.document !== undefined) {
    graphqlRequest.query = reading.document;
    graphqlRequest.extensions = {};
  }
}
