import type { ApolloServerPlugin, GraphQLRequestListener } from '@apollo/server';
import type { KeyActivity } from '../keys/key-activity.ts';
import type { GraphQLContext } from './context.ts';
import type { CostLimit } from './cost.ts';
import type { DeprecatedFields } from './deprecations.ts';
import { logErrors } from './errors.ts';
import { useReading } from './request.ts';

export interface LifecycleOptions {
  cost: CostLimit;
  deprecated: DeprecatedFields;
  activity: KeyActivity;
}

/** All that we do in the life of an operation, in one plugin with one listener: Apollo Server awaits every one of them. */
export function lifecycle({ cost, deprecated, activity }: LifecycleOptions): ApolloServerPlugin<GraphQLContext> {
  const listener: GraphQLRequestListener<GraphQLContext> = {
    async didResolveOperation({ document, operation, request, contextValue }) {
      if (operation) cost.check(document, operation, request.variables ?? {});
      for (const [coordinate, removal] of deprecated.in(document)) {
        activity.calledDeprecated(contextValue.caller?.id ?? 0, coordinate, removal);
      }
    },
    async didEncounterErrors({ errors, contextValue }) {
      logErrors(errors, contextValue.request);
    },
    // A client that asks for `application/json` alone gets 200 for every well-formed request, as GraphQL over HTTP
    // (section 6.4.1) wishes, even when its document or variables are refused: it could not tell a GraphQL response from
    // an intermediary's by its status. Whoever accepts `application/graphql-response+json` gets 400.
    async willSendResponse({ request, response, source }) {
      if (response.http.status !== 400 || source === undefined) return;
      const accept = request.http?.headers.get('accept') ?? '';
      if (!accept.includes('application/graphql-response+json')) response.http.status = 200;
    },
  };
  return {
    async requestDidStart({ request, contextValue }) {
      useReading(request, contextValue.request);
      return listener;
    },
  };
}
