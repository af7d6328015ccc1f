import type { FastifyInstance, FastifyRequest } from 'fastify';
import { acceptedTypes, varyBy } from '../http/headers.ts';
import { origin } from '../rest/pages.ts';
import { asset, fill, hashOf, open, policyOf, sendPage } from './page.ts';

/** A page or document of this service that needs no key. */
interface PageLink {
  /** Its member in the JSON. */
  name: string;
  path: string;
  /** Its heading on the page. */
  group: string;
  title: string;
  text: string;
  /** True for pages that explore GraphQL, which an operator can switch off. */
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

export interface FrontPageOptions {
  /** Of this release. */
  version: string;
  /** Whether browsers get pages to explore GraphQL. */
  explorer: boolean;
}

/**
 * `/`: links to the pages and documents. HTML for clients that prefer it, else JSON, also for clients that accept neither
 * (RFC 9110 section 12.4.1). Register it last: it links only to existing routes.
 */
export async function frontPage(app: FastifyInstance, { version, explorer }: FrontPageOptions): Promise<void> {
  const style = `${asset('theme.css')}${asset('front-page.css')}`;
  const policy = policyOf(`style-src ${hashOf(style)}`, "img-src 'self'");
  const about = { name: '', version, description: '' };
  let served: PageLink[] = [];
  let page = '';
  app.addHook('onReady', async () => {
    const { title, description = '' } = app.swagger().info as { title: string; description?: string };
    Object.assign(about, { name: title, description });
    served = links.filter(
      ({ path, isExplorer = false }) => app.hasRoute({ method: 'GET', url: path }) && (explorer || !isExplorer),
    );
    const sections = Object.entries(Object.groupBy(served, ({ group }) => group)).map(sectionOf);
    page = fill(asset('front-page.html').toString(), {
      ...Object.fromEntries(Object.entries(about).map(([name, value]) => [name, escaped(value)])),
      style: `<style>${style}</style>`,
      icon: asset('icon.svg').toString(),
      sections: sections.join('\n'),
      // Filled by each request.
      address: '%address%',
    });
  });
  app.get('/', open, async (request, reply) => {
    const address = origin(request);
    varyBy(reply, 'Accept');
    if (prefersHtml(request)) return sendPage(reply, { html: page.replaceAll('%address%', escaped(address)), policy });
    return { ...about, links: Object.fromEntries(served.map(({ name, path }) => [name, address + path])) };
  });
}

function prefersHtml(request: FastifyRequest): boolean {
  return acceptedTypes(request, ['application/json', 'text/html'])[0] === 'text/html';
}

function sectionOf([group, links = []]: [string, PageLink[] | undefined]): string {
  const id = escaped(group.toLowerCase());
  return `<section aria-labelledby="${id}">
<h2 id="${id}">${escaped(group)}</h2>
<ul class="links">
${links.map(itemOf).join('\n')}
</ul>
</section>`;
}

function itemOf({ path, title, text }: PageLink): string {
  const link = `<a href="${escaped(path.slice(1))}">${escaped(title)}</a>`;
  return `<li>${link}<code>${escaped(path)}</code><p>${escaped(text)}</p></li>`;
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}
