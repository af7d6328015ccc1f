import {
  type Adapter,
  directusRest,
  platformaticRest,
  specifiedRest,
} from './adapters.ts';
import {
  directusGraphQL,
  ownGraphQL,
  platformaticGraphQL,
  postGraphile,
} from './graphql-adapters.ts';
import {
  authorization,
  directus,
  isDirectusInstalled,
  ourProgram,
  type Program,
  peer,
  previousProgram,
} from './programs.ts';

/** The REST or GraphQL API of a program. */
export interface System {
  id: string;
  title: string;
  api: 'rest' | 'graphql';
  program: Program;
  adapter: Adapter;
  /** Packages whose versions the report lists. */
  packages: string[];
  /** The supported workloads; all by default. */
  workloads?: string[];
}

export const ourRest: System = {
  id: 'ours-rest',
  title: 'ours, REST',
  api: 'rest',
  program: ourProgram,
  adapter: specifiedRest(authorization),
  packages: [],
};

const ourGraphQL: System = {
  id: 'ours-graphql',
  title: 'ours, GraphQL',
  api: 'graphql',
  program: ourProgram,
  adapter: ownGraphQL(authorization),
  packages: [],
};

/** Another revision of the service, to measure the cost of a change. */
const previous: System[] = previousProgram
  ? [
      {
        ...ourRest,
        id: 'previous-rest',
        title: 'previous, REST',
        program: previousProgram,
      },
      {
        ...ourGraphQL,
        id: 'previous-graphql',
        title: 'previous, GraphQL',
        program: previousProgram,
      },
    ]
  : [];

/** Two processes: one as it starts by itself, and one with its cache. */
const directusSystems = [false, true].flatMap((isCached): System[] => {
  const program = directus(isCached);
  const name = isCached ? 'directus-cached' : 'directus';
  const title = isCached ? 'Directus with its cache' : 'Directus';
  const shared = { program, packages: ['directus'] };
  return [
    {
      ...shared,
      id: `${name}-rest`,
      title: `${title}, REST`,
      api: 'rest',
      adapter: directusRest(authorization),
    },
    {
      ...shared,
      id: `${name}-graphql`,
      title: `${title}, GraphQL`,
      api: 'graphql',
      adapter: directusGraphQL(authorization),
    },
  ];
});

const platformatic = peer('platformatic');
const straightforward = peer('straightforward', 'dist/straightforward.js');
const ownStack = ['@apollo/server', 'type-graphql', '@mikro-orm/postgresql'];

/** In the order in which they are started. */
export const systems: System[] = [
  ourRest,
  ourGraphQL,
  ...previous,
  {
    id: 'fastify-pg',
    title: 'Fastify + pg, by hand, REST',
    api: 'rest',
    program: peer('fastify-pg'),
    adapter: specifiedRest(),
    packages: ['fastify', 'pg'],
  },
  {
    id: 'fastify-pg-duties',
    title: 'Fastify + pg by hand, same duties, REST',
    api: 'rest',
    program: peer('fastify-pg-duties'),
    adapter: specifiedRest(authorization),
    packages: ['fastify', 'pg'],
  },
  {
    id: 'fastify-pg-plugins',
    title: 'Fastify + pg by hand, same answers by plugins, REST',
    api: 'rest',
    program: peer('fastify-pg-plugins'),
    adapter: specifiedRest(authorization),
    packages: ['fastify', 'pg', '@fastify/compress', '@fastify/etag'],
  },
  {
    id: 'mercurius',
    title: 'Mercurius + graphql-jit + pg',
    api: 'graphql',
    program: peer('mercurius'),
    adapter: ownGraphQL(),
    packages: ['mercurius', 'graphql-jit', 'pg'],
  },
  {
    id: 'mercurius-duties',
    title: 'Mercurius + graphql-jit + pg, same duties',
    api: 'graphql',
    program: peer('mercurius-duties'),
    adapter: ownGraphQL(authorization),
    packages: ['mercurius', 'graphql-jit', 'pg'],
  },
  {
    id: 'platformatic-rest',
    title: 'Platformatic DB, REST',
    api: 'rest',
    program: platformatic,
    adapter: platformaticRest(),
    packages: ['@platformatic/db'],
  },
  {
    id: 'platformatic-graphql',
    title: 'Platformatic DB, GraphQL',
    api: 'graphql',
    program: platformatic,
    adapter: platformaticGraphQL(),
    packages: ['@platformatic/db'],
  },
  {
    id: 'postgraphile',
    title: 'PostGraphile (Amber) on Grafserv',
    api: 'graphql',
    program: peer('postgraphile'),
    adapter: postGraphile(),
    packages: ['postgraphile', 'grafserv'],
  },
  {
    id: 'yoga',
    title: 'GraphQL Yoga + pg',
    api: 'graphql',
    program: peer('yoga'),
    adapter: ownGraphQL(),
    packages: ['graphql-yoga', 'pg'],
  },
  ...(isDirectusInstalled ? directusSystems : []),
  {
    id: 'straightforward-rest',
    title: 'our stack, straightforward, REST',
    api: 'rest',
    program: straightforward,
    adapter: specifiedRest(),
    packages: ['fastify', '@mikro-orm/postgresql'],
  },
  {
    id: 'straightforward-graphql',
    title: 'our stack, straightforward, GraphQL',
    api: 'graphql',
    program: straightforward,
    adapter: ownGraphQL(),
    packages: ownStack,
  },
  {
    id: 'node-http',
    title: 'limit: static answer of node:http',
    api: 'rest',
    program: peer('node-http'),
    adapter: specifiedRest(),
    packages: ['pg'],
    workloads: ['hot'],
  },
  {
    id: 'static-rest',
    title: 'limit: static Fastify route',
    api: 'rest',
    program: peer('static-rest'),
    adapter: specifiedRest(),
    packages: ['fastify'],
    workloads: ['hot'],
  },
  {
    id: 'static-graphql',
    title: 'limit: static Apollo resolver',
    api: 'graphql',
    program: peer('static-graphql'),
    adapter: ownGraphQL(),
    packages: ['@apollo/server', '@as-integrations/fastify'],
    workloads: ['hot'],
  },
];
