/**
 * The configuration of Hive Gateway. It passes the client's key on to the
 * store, and to no other subgraph.
 */
export const gatewayConfig = {
  supergraph: 'supergraph.graphql',
  propagateHeaders: {
    fromClientToSubgraphs({ request, subgraphName }) {
      const authorization = request.headers.get('authorization');
      return subgraphName === 'animals' && authorization
        ? { authorization }
        : {};
    },
  },
};
