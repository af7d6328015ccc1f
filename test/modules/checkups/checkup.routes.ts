import type { Routes } from '#engine/api/http/routes.js';
import {
  failure,
  pageOf,
  success,
} from '#engine/api/rest/documented-responses.js';
import { orNotFound, sendPage } from '#engine/api/rest/responses.js';
import { int64FromText } from '#engine/validation/int64.js';
import { idSchema, removalSchema } from '#engine/validation/schemas.js';
import type { Checkups } from './checkup.entity.ts';
import {
  checkupChangeSchema,
  checkupQuerySchema,
  checkupSchema,
  newCheckupSchema,
} from './checkup.schemas.ts';

export function checkupRoutes(app: Routes, checkups: Checkups): void {
  const page = pageOf(checkupSchema, 'Checkups', 'A page of checkups.');
  const listRoute = {
    operationId: 'listCheckups',
    summary: 'List checkups',
    response: { 200: page },
  };
  const listCheckups = { ...listRoute, querystring: checkupQuerySchema };
  app.get('/checkups', { schema: listCheckups }, async (request, reply) =>
    sendPage(request, reply, await checkups.list(request.query, request.call)),
  );

  const created = { 201: success(checkupSchema, 'Checkup added.') };
  const createRoute = {
    operationId: 'createCheckup',
    summary: 'Add a checkup',
    response: created,
  };
  const createCheckup = { ...createRoute, body: newCheckupSchema };
  app.post(
    '/checkups',
    { schema: createCheckup, config: { isIdempotent: true } },
    async (request, reply) =>
      reply.code(201).send(await checkups.create(request.body, request.call)),
  );

  const one = '/checkups/:checkupId(^[^]+$)';
  const params = idSchema('checkupId', 'checkup');
  const missing = {
    404: failure(
      'NOT_FOUND',
      'There is no such checkup.',
      'There is no checkup with the id 1.',
    ),
  };
  const found = { 200: success(checkupSchema, 'The checkup.'), ...missing };
  const getCheckup = {
    operationId: 'getCheckup',
    summary: 'Get a checkup',
    params,
    response: found,
  };
  app.get(
    one,
    { schema: getCheckup },
    async ({ params: { checkupId }, call }) =>
      orNotFound(
        await checkups.find(int64FromText(checkupId), call),
        'checkup',
        checkupId,
      ),
  );

  const conflict = {
    409: failure(
      'CONFLICT',
      'Another version.',
      'It has version 5, not 4: read it again.',
    ),
  };
  const changed = {
    200: success(checkupSchema, 'Checkup changed.'),
    ...missing,
    ...conflict,
  };
  const changeRoute = {
    operationId: 'changeCheckup',
    summary: 'Change a checkup',
    response: changed,
  };
  const changeCheckup = { ...changeRoute, params, body: checkupChangeSchema };
  app.patch(
    one,
    { schema: changeCheckup },
    async ({ params: { checkupId }, body, call }) =>
      orNotFound(
        await checkups.change(int64FromText(checkupId), body, call),
        'checkup',
        checkupId,
      ),
  );

  const removed = {
    204: { description: 'Checkup removed.', type: 'null' },
    ...missing,
    ...conflict,
  };
  const removeRoute = {
    operationId: 'removeCheckup',
    summary: 'Remove a checkup',
    response: removed,
  };
  const removeCheckup = { ...removeRoute, params, querystring: removalSchema };
  app.delete(
    one,
    { schema: removeCheckup },
    async ({ params: { checkupId }, query, call }, reply) => {
      orNotFound(
        await checkups.remove(int64FromText(checkupId), query, call),
        'checkup',
        checkupId,
      );
      return reply.code(204).send();
    },
  );
}
