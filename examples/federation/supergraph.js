import { writeFile } from 'node:fs/promises';
import { composeServices } from '@apollo/composition';
import { parse } from 'graphql';

/**
 * Reads the schemas of both subgraphs, the store's with the API key KEY, and
 * composes `supergraph.graphql`.
 */

const {
  ANIMALS_URL = 'http://127.0.0.1:4000/graphql',
  VISITS_URL = 'http://127.0.0.1:4010/',
} = process.env;

async function schemaOf(name, url) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${process.env.KEY}`,
    },
    body: JSON.stringify({ query: '{ _service { sdl } }' }),
  });
  const { data, errors } = await response.json();
  if (!data) throw new Error(`${name}: ${errors[0].message}`);
  return { name, url, typeDefs: parse(data._service.sdl) };
}

const subgraphs = await Promise.all([
  schemaOf('animals', ANIMALS_URL),
  schemaOf('visits', VISITS_URL),
]);
const { supergraphSdl, errors } = composeServices(subgraphs);
if (errors)
  throw new AggregateError(
    errors,
    errors.map(({ message }) => message).join('\n'),
  );
await writeFile(process.argv[2] ?? 'supergraph.graphql', supergraphSdl);
