import type { FastifyInstance } from 'fastify';
import { StoreError } from '../errors.ts';
import { commonErrors, errorResponse } from '../rest/error.schema.ts';

const message = 'The interface names an order listing but does not define it; it is not available yet.';

/** `GET /store/orders`: named by the specification, its contract not shown. 501 rather than an invented payload. */
export async function orderRoutes(app: FastifyInstance): Promise<void> {
  app.get('/store/orders', { schema: listOrders }, async () => {
    throw new StoreError('NOT_IMPLEMENTED', message);
  });
}

const listOrders = {
  operationId: 'listOrders',
  tags: ['Store'],
  summary: 'List orders (not available yet)',
  description: 'The interface refers to this operation without showing its contract. It answers 501.',
  response: { 501: errorResponse('NOT_IMPLEMENTED', 'Not available yet.', message), ...commonErrors },
};
