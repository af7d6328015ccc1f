import { failure, type Module, StoreError } from '@animal-store/engine';

const message =
  'The interface names an order listing but does not define it; it is not available yet.';

const listOrders = {
  operationId: 'listOrders',
  summary: 'List orders (not available yet)',
  description:
    'The interface refers to this operation without showing its contract. It answers 501.',
  response: { 501: failure('NOT_IMPLEMENTED', 'Not available yet.', message) },
};

/**
 * `GET /store/orders`: named by the specification without its contract. 501
 * rather than an invented payload.
 */
export const ordersModule: Module = {
  tag: { name: 'Store', description: 'The store itself.' },
  open: () => ({
    routes: (app) =>
      app.get(
        '/store/orders',
        { schema: listOrders, config: { isUnmetered: true } },
        async () => {
          throw new StoreError('NOT_IMPLEMENTED', message);
        },
      ),
  }),
};
