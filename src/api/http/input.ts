import type { IncomingMessage, ServerResponse } from 'node:http';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyTypeProvider,
  preValidationHookHandler,
  RawServerDefault,
} from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Static, TObject, TSchema } from 'typebox';
import { type Checked, checker } from '../../storage/input/check.ts';

/** Types the input of handlers: query strings and bodies as their schemas say, validated. Path parameters stay text. */
interface InputTypes extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Checked<Static<this['schema']>> : never;
}

/** Where a module adds its routes: handlers get validated, typed input. */
export type Routes = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, InputTypes>;

/** Makes Fastify validate input with `checker`: a schema means the same here as in OpenAPI. */
export function buildValidator() {
  return ({ schema, httpPart }: { schema: TObject; httpPart?: string }) => {
    // An invalid path parameter is a 404, which its route sends; who reads a header judges it.
    if (httpPart === 'params' || httpPart === 'headers') return () => true;
    const check = checker(schema, { isText: httpPart !== 'body' });
    return (input: unknown) => {
      try {
        return { value: check(input) };
      } catch (error) {
        return { error };
      }
    };
  };
}

/** Refuses to start with a route whose input is not validated. Register it before the routes. */
export const checkedInput = fastifyPlugin(
  async (app) => {
    app.addHook('onRoute', (route) => {
      const { url, method, schema, config } = route;
      if (config?.checksItself) return;
      const takesBody = [method].flat().some((one) => !['GET', 'HEAD', 'OPTIONS'].includes(one));
      if (takesBody && !schema?.body)
        throw new Error(`${method} ${url} has no schema for its body: nobody would check it.`);
      if (!schema?.querystring) route.preValidation = [withoutQuery, route.preValidation ?? []].flat();
    });
  },
  { name: 'checked-input' },
);

const withoutQuery: preValidationHookHandler = (request, _reply, done) => {
  request.query = {};
  done();
};

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route validates its body itself. */
    checksItself?: boolean;
  }
}
