import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import createRouter, { type HTTPMethod } from 'find-my-way';
import { StoreError } from '../../errors.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** For prefixes whose failures have a format of their own: they need a handler of their own. */
    answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply;
  }
}

/**
 * Sends 404 for unknown paths, and 405 with `Allow` (RFC 9110 section 15.5.6) for known ones; OPTIONS lists methods.
 */
export const notFound = fastifyPlugin(
  async (app: FastifyInstance) => {
    const methodsOf = new Map<string, Set<string>>();
    const paths = createRouter();

    app.addHook('onRoute', ({ url, method }) => {
      if (url === '*') return;
      let methods = methodsOf.get(url);
      if (!methods) {
        methods = new Set(['OPTIONS']);
        methodsOf.set(url, methods);
        paths.on('GET' as HTTPMethod, url, () => undefined, methods);
      }
      for (const one of [method].flat()) methods.add(one);
    });

    const answer = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
      const methods = paths.find('GET' as HTTPMethod, request.raw.url ?? '/')?.store as Set<string> | undefined;
      if (!methods) throw nothingHere();
      const allow = [...methods].sort().join(', ');
      if (request.method === 'OPTIONS') return reply.code(204).header('allow', allow).send();
      // The route itself found nothing, for example a file of the documentation.
      if (methods.has(request.method)) throw nothingHere();
      throw new StoreError('METHOD_NOT_ALLOWED', `${request.method} is not possible here. Allowed: ${allow}.`, {
        headers: { allow },
      });
    };
    app.setNotFoundHandler(answer);
    app.decorate('answerNotFound', answer);
    // Where no body is accepted, none is read, and errors in it do not matter.
    app.addHook('preParsing', async (request, reply) => {
      if (request.is404) answer(request, reply);
    });
  },
  { name: 'not-found', dependencies: ['errors'] },
);

function nothingHere(): StoreError {
  return new StoreError('NOT_FOUND', 'There is nothing at this address.');
}
