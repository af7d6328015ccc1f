import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Values } from '@animal-store/graphql-limits/cost';
import {
  type ApolloServerOptions,
  type ApolloServerPlugin,
  HeaderMap,
} from '@apollo/server';
import { refused } from '../../api/graphql/answer.ts';
import type { GraphQLContext } from '../../api/graphql/context.ts';
import {
  Apollo,
  disabled,
  emptyResponse,
  type Operation,
  type Run,
} from '../../api/graphql/document.ts';
import type { GraphQLParts } from '../../api/graphql/handler.ts';
import type { Pipeline } from '../../api/graphql/pipeline.ts';

type Plugins = readonly ApolloServerPlugin<GraphQLContext>[];

/**
 * Loads plugins of Apollo Server.
 *
 * @param path of a module, whose default export is a plugin or an array of them
 */
export async function pluginsIn(path: string): Promise<Plugins> {
  const module = await import(pathToFileURL(resolve(path)).href).catch(
    (cause: Error) => {
      throw new Error(
        `${path} (APOLLO_PLUGINS) cannot be loaded: ${cause.message}`,
        { cause },
      );
    },
  );
  const plugins = [module.default].flat();
  if (plugins.every((plugin) => typeof plugin === 'object' && plugin !== null))
    return plugins;
  throw new Error(
    `${path} (APOLLO_PLUGINS) must have a default export: a plugin of Apollo Server, or an array of them.`,
  );
}

/** The context of a request, and what our plugin keeps of its operation. */
interface ApolloContext extends GraphQLContext {
  readonly run: Run & {
    readonly variables: Values;
    operation?: Operation;
    charged?: Promise<unknown>;
  };
}

/**
 * Answers with Apollo Server's own execution, so that its plugins see the
 * request, every stage, every field and the response, and may change it. Apollo
 * Server has no subscriptions: plugins see their documents only.
 *
 * It does not pass Apollo's HTTP layer (`executeHTTPGraphQLRequest`), which
 * loses digits of int64 variables by GET.
 */
export const answerWithPlugins =
  (
    plugins: Plugins,
    apollo: NonNullable<ApolloServerOptions<GraphQLContext>['apollo']>,
  ): NonNullable<GraphQLParts['answer']> =>
  async (pipeline, app) => {
    // With its key, Apollo Server reports usage, and the schema if
    // APOLLO_SCHEMA_REPORTING says so.
    const enabled = new Set(plugins.map(idOf));
    if (apollo.key !== undefined)
      enabled.add('UsageReporting').add('SchemaReporting');
    const server = new Apollo(pipeline.options, {
      apollo,
      plugins: [
        performing(pipeline),
        ...plugins,
        ...disabled().filter((plugin) => !enabled.has(idOf(plugin))),
      ],
    });
    await server.start();
    app.addHook('onClose', () => server.stop());
    return async (parameters, context) => {
      const { variables = {}, operationName } = parameters;
      const run: ApolloContext['run'] = { variables };
      const { found, outcome } = await server
        .run({ ...parameters, http: httpOf(context) }, { ...context, run })
        .catch((error: Error) => ({
          found: undefined,
          outcome: refused(error),
        }));
      const { operation, charged } = run;
      if (operation) {
        // Another plugin may have refused the operation while it is still being
        // charged. The outcome has its failure.
        await charged?.catch(() => undefined);
        return pipeline.end(operation, context, outcome);
      }
      // Apollo Server executes no subscriptions, and refuses a GET in its own
      // words: both are left to us.
      const isRefusedGet =
        context.request.method === 'GET' && !context.accepted.stream;
      const isLeft = !outcome.failures || isRefusedGet;
      if (!found?.document || !found.operation || !isLeft) return outcome;
      const left = pipeline.operationIn(found.document, operationName);
      return pipeline.perform(left, variables, context);
    };
  };

/** Our steps, before those of all other plugins. */
function performing(pipeline: Pipeline): ApolloServerPlugin<ApolloContext> {
  const { introspection } = pipeline.options;
  return {
    async requestDidStart({ contextValue }) {
      const { run } = contextValue;
      return {
        async didResolveOperation({ document, operation, request }) {
          if (operation?.operation === 'subscription') return;
          const own = pipeline.operationIn(document, request.operationName);
          run.operation = own;
          pipeline.begin(own, contextValue);
          run.charged = pipeline.admit(own, run.variables, contextValue);
          await run.charged;
        },
        async responseForOperation({ operation }) {
          if (operation?.operation === 'subscription') return emptyResponse();
          return null;
        },
        async didEncounterErrors({ errors }) {
          // graphql-js can omit names from errors about variables, and Apollo
          // Server does not let it.
          if (introspection) return;
          for (const error of errors)
            error.message = error.message.replace(suggestion, '');
        },
      };
    },
  };
}

const suggestion = / ?Did you mean (?:the enum value )?"[^?]*\?$/;

function httpOf({
  request: { method, url, headers, body },
  accepted,
}: GraphQLContext) {
  const given = Object.entries(headers).map(
    ([name, value]) => [name, `${value}`] as const,
  );
  const isStreamedGet = method === 'GET' && accepted.stream;
  return {
    method: isStreamedGet ? 'POST' : method,
    headers: new HeaderMap(given),
    search: /\?.*$/.exec(url)?.[0] ?? '',
    body,
  };
}

/**
 * The name of a plugin that Apollo Server installs by itself. It rejects one
 * that is both given and disabled.
 */
const idOf = (plugin: ApolloServerPlugin<never>) =>
  (plugin as { __internal_plugin_id__?: string }).__internal_plugin_id__;
