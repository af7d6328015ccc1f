import { listedIn } from '@animal-store/graphql-limits/cost';
import type { FastifyRequest } from 'fastify';
import { type TObject, Type } from 'typebox';
import type { Call } from '../../call.ts';
import { badInput } from '../../errors.ts';
import type { Followed } from '../../records/live-items.ts';
import { int64FromText } from '../../validation/int64.ts';
import type { MemberSchema } from '../../validation/rules.ts';
import { idSchema } from '../../validation/schemas.ts';
import type { Routes } from '../http/routes.ts';
import { failure, pageOf, success } from '../rest/documented-responses.ts';
import { orNotFound, sendPage } from '../rest/responses.ts';
import {
  type Definition,
  type ItemOperation,
  itemOperationsOf,
  type ResourceService,
  type ResourceServices,
} from './definition.ts';
import { createEach, maxItems, outcomesOf, toOutcome } from './several.ts';

/** Adds the REST routes of a resource. */
export function addRoutes(
  app: Routes,
  definition: Definition,
  services: ResourceServices,
) {
  for (const name of definition.operations)
    collectionRoutes[name]?.(app, definition, services);
  for (const operation of itemOperationsOf(definition))
    addItemRoute(app, operation, definition, services);
}

const collectionRoutes: Record<string, typeof addList | undefined> = {
  list: addList,
  create: addCreate,
  createMany: addCreateMany,
};

function addList(
  app: Routes,
  { names: { path, types, nouns }, schemas, audiences, follow }: Definition,
  { service, live }: ResourceServices,
) {
  const { maximum } = schemas.query.properties.limit as MemberSchema;
  const words = `A page of ${nouns}.`;
  const page = pageOf(schemas.item, types, words, true, maximum);
  const schema = {
    operationId: `list${types}`,
    summary: `List ${nouns}`,
    querystring: follow ? withFollow(schemas.query) : schemas.query,
    response: { 200: page },
  };
  const config = { audiences, live: live && followerOf(service, live) };
  app.get(path, { schema, config }, async (request, reply) => {
    const { call } = request;
    const query = request.query as never;
    const found = await service.list(query, call);
    return sendPage(request, reply, found, () => service.count(query, call));
  });
}

const withFollow = ({ properties }: TObject) => {
  const description =
    'With `text/event-stream`: events `added`, `changed` and, with the `id` only, `removed`, after the position `after` of a change.';
  const schema = { type: 'string', enum: ['all'], description };
  const follow = Type.Optional(Type.Unsafe<'all'>(schema));
  return Type.Object({ ...properties, follow });
};

type ListOf = { follow?: 'all'; limit?: number; sort?: string };

/** @throws StoreError BAD_USER_INPUT for a filter of all events */
function followerOf(
  service: ResourceService,
  live: NonNullable<ResourceServices['live']>,
) {
  return (query: never, call: Call) => {
    const { follow, limit: _, sort: __, ...place }: ListOf & Followed = query;
    if (!follow) return live.subscribe(query, call);
    const { after, ...others } = place;
    const filters = Object.entries(others).filter(([, one]) => one != null);
    if (filters.length > 0) throw badInput('follow takes no filters.');
    return service.followAll?.({ after }, call) as never;
  };
}

function addCreate(
  app: Routes,
  { names: { path, type, nouns }, schemas, audiences }: Definition,
  { service }: ResourceServices,
) {
  const schema = {
    operationId: `create${type}`,
    summary: `Add one to the ${nouns}`,
    body: schemas.input,
    response: { 201: success(schemas.item, 'It is added.') },
  };
  const config = { audiences, isIdempotent: true };
  app.post(path, { schema, config }, async ({ body, call }, reply) =>
    reply.code(201).send(await service.create(body as never, call)),
  );
}

/** Bytes of an outcome beside its input. */
const beside = 1024;

function addCreateMany(
  app: Routes,
  { names: { path, type, types, nouns }, schemas, audiences }: Definition,
  { service }: ResourceServices,
) {
  const answer = outcomesOf(schemas.item, type);
  const schema = {
    operationId: `create${types}`,
    summary: `Add several to the ${nouns}`,
    body: schemas.several,
    response: { 200: success(answer, 'What has become of each.') },
  };
  const { bodyLimit } = app.initialConfig;
  const mayAnswer = ({ body, headers }: FastifyRequest) => {
    const { 'content-length': length = bodyLimit } = headers;
    const count = Math.min(listedIn(body ?? {}), maxItems);
    return Number(length) + count * beside;
  };
  const config = { audiences, isIdempotent: true, mayAnswer };
  app.post(`${path}/batch`, { schema, config }, async (request) => {
    const { inputs } = request.body as never;
    const outcomes = await createEach(service, inputs, request.call);
    return outcomes.map((one) => toOutcome(one, request));
  });
}

function addItemRoute(
  app: Routes,
  { verb, description, method, input, run }: ItemOperation,
  { names: { path, type, one, noun }, schemas, audiences }: Definition,
  { service }: ResourceServices,
) {
  const name = `${one}Id`;
  const isRemoval = method === 'DELETE';
  const isTransition = method === 'POST';
  const missing = `There is no ${noun} with the id 1.`;
  const version = 'It has version 5, not 4: read it again.';
  const schema = {
    operationId: verb + type,
    summary: description,
    params: idSchema(name, noun),
    ...(input && { [isRemoval ? 'querystring' : 'body']: input }),
    response: {
      ...(isRemoval
        ? { 204: { description: 'It is removed.', type: 'null' } }
        : { 200: success(schemas.item, 'The item.') }),
      404: failure('NOT_FOUND', 'There is none with this id.', missing),
      ...(method !== 'GET' && {
        409: failure('CONFLICT', 'Its version or state differs.', version),
      }),
    },
  };
  app.route({
    method,
    // An empty segment is not an id.
    url: `${path}/:${name}(^[^]+$)${isTransition ? `/${verb}` : ''}`,
    schema,
    config: { audiences, takesNoBody: isTransition, isTried: method !== 'GET' },
    async handler({ params, body, query, call }, reply) {
      const id = (params as Record<string, string>)[name] ?? '';
      const given = (body ?? query) as never;
      const found = await run(service, int64FromText(id), call, given);
      const item = orNotFound(found, noun, id);
      return isRemoval ? reply.code(204).send() : item;
    },
  });
}
