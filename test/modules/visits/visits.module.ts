import type { Routes } from '../../../src/api/http/input.ts';
import type { Module } from '../../../src/api/module.ts';
import { failure, pageOf, success } from '../../../src/api/rest/documented-responses.ts';
import { sendPage } from '../../../src/api/rest/responses.ts';
import { int64FromText } from '../../../src/validation/int64.ts';
import { idSchema } from '../../../src/validation/page.ts';
import { migrationOf } from '../../support/migrations.ts';
import {
  newVisitSchema,
  type VisitChange,
  VisitEntity,
  VisitService,
  visitChangeSchema,
  visitQuerySchema,
  visitSchema,
} from './visit.service.ts';

function visitRoutes(app: Routes, visits: VisitService): void {
  const page = pageOf(visitSchema, 'Visits', 'A page of visits.');
  const listVisits = { operationId: 'listVisits', querystring: visitQuerySchema, response: { 200: page } };
  app.get('/visits', { schema: listVisits }, async (request, reply) =>
    sendPage(request, reply, await visits.list(request.query, request.call)),
  );

  const response = { 201: success(visitSchema, 'Visit added.') };
  const createVisit = { operationId: 'createVisit', body: newVisitSchema, response };
  app.post('/visits', { schema: createVisit, config: { isRepeatable: true } }, async (request, reply) =>
    reply.code(201).send(await visits.create(request.body, request.call, request.claim)),
  );

  const one = '/visits/:visitId(^[^]+$)';
  const params = idSchema('visitId', 'visit');
  const missing = { 404: failure('NOT_FOUND', 'There is no such visit.', 'There is no visit with this id.') };
  const changed = { 200: success(visitSchema, 'Visit changed.'), ...missing };
  const changeVisit = { operationId: 'changeVisit', params, body: visitChangeSchema, response: changed };
  app.patch<{ Params: { visitId: string }; Body: VisitChange }>(
    one,
    { schema: changeVisit },
    async ({ params, body }) => visits.change(int64FromText(params.visitId), body),
  );

  const removed = { 204: { description: 'Visit removed.', type: 'null' }, ...missing };
  const removeVisit = { operationId: 'removeVisit', params, response: removed };
  app.delete<{ Params: { visitId: string } }>(one, { schema: removeVisit }, async ({ params }, reply) => {
    await visits.remove(int64FromText(params.visitId));
    return reply.code(204).send();
  });
}

export const visitsModule: Module = {
  tag: { name: 'Visits', description: 'Visits of animals at the vet.' },
  entities: [VisitEntity],
  migrations: [
    migrationOf('2027_01_02_000000_create_visit', [
      `create table visit (
        id bigserial primary key,
        pet_id bigint not null references pet (id) on delete cascade,
        reason text not null,
        status text not null check (status in ('planned', 'done')))`,
      'create index visit_pet_id_id_index on visit (pet_id, id)',
      'create index visit_status_id_index on visit (status, id)',
    ]),
  ],
  open({ database }) {
    const visits = new VisitService(database);
    return { routes: (app) => visitRoutes(app, visits) };
  },
};
