import type { FastifyInstance } from 'fastify';

/** A page or document of this service that needs no key. */
export interface PageLink {
  /** Its member in the JSON face. */
  name: string;
  path: string;
  /** The heading that it stands under. */
  group: string;
  title: string;
  text: string;
  /** Whether it is there for browsers alone, to explore GraphQL. */
  isExplorer?: boolean;
}

const links: PageLink[] = [
  {
    name: 'reference',
    path: '/docs',
    group: 'REST',
    title: 'Reference',
    text: 'Every operation, to be tried there with your key.',
  },
  {
    name: 'openapi',
    path: '/v1/openapi.json',
    group: 'REST',
    title: 'OpenAPI',
    text: 'The contract, for generators of clients.',
  },
  {
    name: 'sandbox',
    path: '/graphql',
    group: 'GraphQL',
    title: 'Apollo Sandbox',
    text: 'Explore and try it. The page loads from Apollo: it needs the internet.',
    isExplorer: true,
  },
  {
    name: 'explorer',
    path: '/graphiql',
    group: 'GraphQL',
    title: 'GraphiQL',
    text: 'Explore and try it without the internet: all of it is served here.',
    isExplorer: true,
  },
  {
    name: 'schema',
    path: '/schema.graphql',
    group: 'GraphQL',
    title: 'Schema',
    text: 'The contract, in the schema definition language.',
  },
  { name: 'liveness', path: '/livez', group: 'Health', title: 'Liveness', text: 'The process runs.' },
  {
    name: 'readiness',
    path: '/readyz',
    group: 'Health',
    title: 'Readiness',
    text: 'It can serve: the database answers.',
  },
];

/** The links to what is there. @param explorer whether the pages to explore GraphQL are */
export function linksOf(app: FastifyInstance, explorer: boolean): PageLink[] {
  return links.filter(
    ({ path, isExplorer = false }) => app.hasRoute({ method: 'GET', url: path }) && (explorer || !isExplorer),
  );
}
