import type { Routes } from '../../../src/api/http/input.ts';
import { failure, pageOf, success } from '../../../src/api/rest/documented-responses.ts';
import { orNotFound, sendPage } from '../../../src/api/rest/responses.ts';
import { int64FromText } from '../../../src/storage/input/int64.ts';
import { idSchema } from '../../../src/storage/input/page.ts';
import type { Checkups } from './checkup.entity.ts';
import { checkupQuerySchema, checkupSchema, newCheckupSchema } from './checkup.schemas.ts';

export function checkupRoutes(app: Routes, checkups: Checkups): void {
  const page = pageOf(checkupSchema, 'Checkups', 'A page of checkups.');
  const listCheckups = { operationId: 'listCheckups', querystring: checkupQuerySchema, response: { 200: page } };
  app.get('/checkups', { schema: listCheckups }, async (request, reply) =>
    sendPage(request, reply, await checkups.list(request.query, request.call)),
  );

  const created = { 201: success(checkupSchema, 'Checkup added.') };
  const createCheckup = { operationId: 'createCheckup', body: newCheckupSchema, response: created };
  app.post('/checkups', { schema: createCheckup, config: { isRepeatable: true } }, async (request, reply) =>
    reply.code(201).send(await checkups.insert(request.body, request.call, request.claim)),
  );

  // An empty id does not match.
  const one = '/checkups/:checkupId(^[^]+$)';
  type One = { Params: { checkupId: string } };
  const params = idSchema('checkupId', 'checkup');
  const missing = { 404: failure('NOT_FOUND', 'There is no such checkup.', 'There is no checkup with the id 1.') };
  const found = { 200: success(checkupSchema, 'The checkup.'), ...missing };
  const getCheckup = { operationId: 'getCheckup', params, response: found };
  app.get<One>(one, { schema: getCheckup }, async ({ params: { checkupId }, call }) =>
    orNotFound(await checkups.find(int64FromText(checkupId), call), 'checkup', checkupId),
  );
}
