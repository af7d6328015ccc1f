import type { FastifyRequest } from 'fastify';
import { int64FromText } from '../../validation/int64.ts';
import { idSchema, removalSchema } from '../../validation/schemas.ts';
import type { Routes } from '../http/routes.ts';
import { failure, pageOf, success } from '../rest/documented-responses.ts';
import { orNotFound, sendPage } from '../rest/responses.ts';
import {
  type Operation,
  type Parts,
  type Serving,
  type Transition,
  transit,
} from './parts.ts';

type AddRoute = (app: Routes, parts: Parts, serving: Serving) => void;

/** Adds the REST routes of a resource. */
export const addRoutes: AddRoute = (app, parts, serving) => {
  for (const operation of parts.operations)
    routes[operation](app, parts, serving);
  for (const [name, transition] of Object.entries(parts.transitions))
    addTransition(app, name, transition, parts, serving);
};

const routes: Record<Operation, AddRoute> = {
  list(app, { names, schemas }, { service, live }) {
    const { nouns, Many, path } = names;
    const page = pageOf(schemas.item, Many, `A page of ${nouns}.`, true);
    const schema = {
      operationId: `list${Many}`,
      summary: `List ${nouns}`,
      querystring: schemas.query,
      response: { 200: page },
    };
    const config = live && {
      live: (query: never) => live.subscribe(query),
    };
    app.get(path, { schema, config }, async (request, reply) => {
      const { query, call } = request as { query: never } & FastifyRequest;
      return sendPage(request, reply, await service.list(query, call), () =>
        service.count(query, call),
      );
    });
  },

  create(app, { names, schemas }, { service }) {
    const { type, noun, path } = names;
    const schema = {
      operationId: `create${type}`,
      summary: `Add: ${noun}`,
      body: schemas.input,
      response: { 201: success(schemas.item, 'The new one.') },
    };
    app.post(
      path,
      { schema, config: { isIdempotent: true } },
      async ({ body, call }, reply) =>
        reply.code(201).send(await service.create(body as never, call)),
    );
  },

  find(app, parts, { service }) {
    const { type, noun } = parts.names;
    const { path, params, found, ofOne } = one(parts);
    const schema = {
      operationId: `get${type}`,
      summary: `Get: ${noun}`,
      params,
      response: found,
    };
    app.get(path, { schema }, async (request) =>
      ofOne(request, (id) => service.find(id, request.call)),
    );
  },

  change(app, parts, { service }) {
    const { type, noun } = parts.names;
    const { path, params, found, ofOne } = one(parts);
    const schema = {
      operationId: `change${type}`,
      summary: `Change: ${noun}`,
      params,
      body: parts.schemas.change,
      response: { ...found, ...conflict },
    };
    app.patch(path, { schema }, async (request) => {
      const { body, call } = request;
      return ofOne(request, (id) => service.change(id, body as never, call));
    });
  },

  remove(app, parts, { service }) {
    const { type, noun } = parts.names;
    const { path, params, missing, ofOne } = one(parts);
    const removed = { description: 'It is removed.', type: 'null' };
    const schema = {
      operationId: `remove${type}`,
      summary: `Remove: ${noun}`,
      params,
      querystring: removalSchema,
      response: { 204: removed, ...missing, ...conflict },
    };
    app.delete(path, { schema }, async (request, reply) => {
      const { query, call } = request;
      await ofOne(request, (id) => service.remove(id, query, call));
      return reply.code(204).send();
    });
  },

  // The route of the list answers who asks for events.
  follow() {},
};

function addTransition(
  app: Routes,
  name: string,
  transition: Transition,
  parts: Parts,
  { service }: Serving,
): void {
  const { type } = parts.names;
  const { path, params, found, ofOne } = one(parts);
  const schema = {
    operationId: `${name}${type}`,
    summary: transition.description,
    params,
    response: { ...found, ...conflict },
  };
  app.post(
    `${path}/${name}`,
    { schema, config: { takesNoBody: true } },
    async (request) =>
      ofOne(request, (id) => transit(service, transition, id, request.call)),
  );
}

/** What all operations on one item have. */
function one({ names: { path, one, noun }, schemas }: Parts) {
  const name = `${one}Id`;
  const missing = {
    404: failure(
      'NOT_FOUND',
      'There is none with this id.',
      `There is no ${noun} with the id 1.`,
    ),
  };
  return {
    // An empty segment is not an id.
    path: `${path}/:${name}(^[^]+$)`,
    params: idSchema(name, noun),
    missing,
    found: { 200: success(schemas.item, 'The item.'), ...missing },
    async ofOne<Found>(
      { params }: { params: Record<string, string> },
      work: (id: ReturnType<typeof int64FromText>) => Promise<Found | null>,
    ): Promise<Found> {
      const id = `${params[name]}`;
      return orNotFound(await work(int64FromText(id)), noun, id);
    },
  };
}

const conflict = {
  409: failure(
    'CONFLICT',
    'It has another version.',
    'It has version 5, not 4: read it again.',
  ),
};
