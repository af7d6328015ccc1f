import type { IncomingMessage, ServerResponse } from 'node:http';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyTypeProvider,
  preValidationHookHandler,
  RawServerDefault,
  RouteOptions,
} from 'fastify';
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

/**
 * The hooks that keep unvalidated input from handlers.
 *
 * @throws Error for a route whose body nothing would validate
 */
export function inputHooks({ url, method, schema, config }: RouteOptions): {
  preValidation?: preValidationHookHandler;
} {
  if (config?.checksItself) return {};
  const takesBody = [method].flat().some((one) => !['GET', 'HEAD', 'OPTIONS', 'DELETE'].includes(one));
  if (takesBody && !schema?.body) throw new Error(`${method} ${url} needs a schema for its body.`);
  if (schema?.querystring && schema.body) return {};
  return {
    preValidation(request, _reply, done) {
      if (!schema?.querystring) request.query = {};
      if (!schema?.body) request.body = undefined;
      done();
    },
  };
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route validates its input itself. */
    checksItself?: boolean;
  }
}
