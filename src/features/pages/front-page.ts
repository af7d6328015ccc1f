import { keep, publicRoute } from '../../api/http/documents.ts';
import { varyBy } from '../../api/http/negotiation.ts';
import { releasedVersion } from '../../config/config.ts';
import { asset, escaped, fill, policyOf, styleOf } from './html.ts';
import { pageHeaders, prefersHtml, type Site } from './site.ts';

/**
 * A link on the front page: its member name in JSON, its path, the title and
 * the text on the page.
 */
type PageLink = [name: string, path: string, title: string, text: string];

/** By the headings on the page. */
const links: Record<string, PageLink[]> = {
  Guides: [
    ['guides', '/guide', 'Guides', 'How to use it, operate it and change it.'],
    [
      'errors',
      '/guide/errors',
      'Errors',
      'Every error code: what it means, and what to do.',
    ],
  ],
  REST: [
    [
      'reference',
      '/docs',
      'Reference',
      'Every operation, to be tried there with your key.',
    ],
    [
      'openapi',
      '/v1/openapi.json',
      'OpenAPI',
      'The contract, for generators of clients.',
    ],
  ],
  GraphQL: [
    [
      'sandbox',
      '/graphql',
      'Apollo Sandbox',
      'Explore and try it. The page loads from Apollo: it needs the internet.',
    ],
    [
      'explorer',
      '/graphiql',
      'GraphiQL',
      'Explore and try it without the internet: all of it is served here.',
    ],
    [
      'schema',
      '/schema.graphql',
      'Schema',
      'The contract, in the schema definition language.',
    ],
  ],
  Health: [
    ['liveness', '/livez', 'Liveness', 'The process runs.'],
    [
      'readiness',
      '/readyz',
      'Readiness',
      'It can serve: the database answers.',
    ],
  ],
};

/**
 * Serves `/`, with links to the pages and documents: HTML if the client prefers
 * it, else JSON (RFC 9110 section 12.4.1).
 */
export function serveFrontPage(site: Site) {
  const { title: name, description } = site.app.info;
  const about = { name, version: releasedVersion(), description };
  const style = styleOf('front-page.css');
  const policy = policyOf(
    "script-src 'self'",
    style.source,
    "img-src 'self'",
    "connect-src 'self'",
  );
  const page = fill(asset('front-page.html').toString(), {
    ...Object.fromEntries(
      Object.entries(about).map(([name, value]) => [name, escaped(value)]),
    ),
    style: style.element,
  });
  const served = () =>
    Object.entries(links)
      .map(([group, all]): [string, PageLink[]] => [
        group,
        all.filter(([, path]) => site.isServed(path)),
      ])
      .filter(([, shown]) => shown.length > 0);
  const sendPage = keep((address) => {
    const sections = served().map(sectionOf).join('\n');
    const [example] = site.app.examples;
    const query = example?.document ?? '{ __typename }';
    return fill(page, {
      address: escaped(address),
      path: escaped(site.firstList().path),
      query: escaped(
        JSON.stringify({ query: query.replace(/\s+/g, ' ').trim() }),
      ),
      sections,
      bar: site.bar('/'),
    });
  }, pageHeaders(policy));
  const sendLinks = keep(
    (address) => {
      const addresses = served().flatMap(([, shown]) =>
        shown.map(([name, path]) => [name, address + path]),
      );
      const links = Object.fromEntries(addresses);
      return JSON.stringify({ ...about, links });
    },
    { 'content-type': 'application/json; charset=utf-8' },
  );
  site.app.get('/', publicRoute, async (request, reply) => {
    varyBy(reply, 'Accept');
    const send = prefersHtml(request) ? sendPage : sendLinks;
    return send(request, reply);
  });
  // The page shows its form only for a key that may write.
  const hidden = { schema: { hide: true } };
  site.app.get('/whoami', hidden, async ({ call: { caller } }) => ({
    name: caller?.name,
    scope: caller?.scopes.join(' '),
  }));
}

function sectionOf([group, shown]: [string, PageLink[]]) {
  const id = escaped(group.toLowerCase());
  return `<section aria-labelledby="${id}">
<h2 id="${id}">${escaped(group)}</h2>
<ul class="links">
${shown.map(itemOf).join('\n')}
</ul>
</section>`;
}

function itemOf([, path, title, text]: PageLink) {
  const link = `<a href="${escaped(path.slice(1))}">${escaped(title)}</a>`;
  return `<li>${link}<code>${escaped(path)}</code><p>${escaped(text)}</p></li>`;
}
