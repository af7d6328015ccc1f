import { keep, publicRoute } from '../../api/http/documents.ts';
import { varyBy } from '../../api/http/negotiation.ts';
import type { Config } from '../../config/config.ts';
import { mapMembers } from '../../validation/schemas.ts';
import { asset, escaped, fill, policyOf, styleOf } from './html.ts';
import { pageHeaders, prefersHtml, type Site } from './site.ts';

/** A link on the front page. */
interface Link {
  /** Its member in JSON. */
  name: string;
  path: string;
  title: string;
  text: string;
}

/** By the headings on the page. */
const links: Record<string, Link[]> = {
  Guides: [
    {
      name: 'guides',
      path: '/guide',
      title: 'Guides',
      text: 'How to use it, operate it and change it.',
    },
    {
      name: 'errors',
      path: '/guide/errors',
      title: 'Errors',
      text: 'Every error code: what it means, and what to do.',
    },
  ],
  REST: [
    {
      name: 'reference',
      path: '/docs',
      title: 'Reference',
      text: 'Every operation, to be tried there with your key.',
    },
    {
      name: 'openapi',
      path: '/v1/openapi.json',
      title: 'OpenAPI',
      text: 'The contract, for generators of clients.',
    },
  ],
  GraphQL: [
    {
      name: 'sandbox',
      path: '/graphql',
      title: 'Apollo Sandbox',
      text: 'Explore and try it. The page loads from Apollo: it needs the internet.',
    },
    {
      name: 'explorer',
      path: '/graphiql',
      title: 'GraphiQL',
      text: 'Explore and try it without the internet: all of it is served here.',
    },
    {
      name: 'schema',
      path: '/schema.graphql',
      title: 'Schema',
      text: 'The contract, in the schema definition language.',
    },
  ],
  Health: [
    {
      name: 'liveness',
      path: '/livez',
      title: 'Liveness',
      text: 'The process runs.',
    },
    {
      name: 'readiness',
      path: '/readyz',
      title: 'Readiness',
      text: 'It can serve: the database answers.',
    },
  ],
};

/**
 * Serves `/`, with links to the pages and documents: HTML if the client prefers
 * it, else JSON (RFC 9110 section 12.4.1).
 */
export function serveFrontPage(
  site: Site,
  { name: program, command, version }: Config,
) {
  const { title: name, description } = site.app.info;
  const about = { name, version, description };
  const style = styleOf('front-page.css');
  const policy = policyOf(
    "script-src 'self'",
    style.source,
    "img-src 'self'",
    "connect-src 'self'",
  );
  const page = fill(asset('front-page.html').toString(), {
    ...mapMembers({ ...about, program, command }, escaped),
    style: style.element,
  });
  const served = (all: Link[]) => all.filter(({ path }) => site.isServed(path));
  const sendPage = keep((address) => {
    const [example] = site.app.examples;
    const document = example?.document ?? '{ __typename }';
    const query = document.replace(/\s+/g, ' ').trim();
    const sections: string[] = [];
    for (const [heading, all] of Object.entries(links)) {
      const shown = served(all);
      if (shown.length > 0) sections.push(sectionOf(heading, shown));
    }
    return fill(page, {
      address: escaped(address),
      path: escaped(site.firstList().path),
      query: escaped(JSON.stringify({ query })),
      sections: sections.join('\n'),
      bar: site.bar('/'),
    });
  }, pageHeaders(policy));
  const sendLinks = keep(
    (address) => {
      const shown = served(Object.values(links).flat());
      const addresses = shown.map(({ name, path }) => [name, address + path]);
      const ofNames = Object.fromEntries(addresses);
      return JSON.stringify({ ...about, links: ofNames });
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

function sectionOf(group: string, shown: Link[]) {
  const id = escaped(group.toLowerCase());
  return `<section aria-labelledby="${id}">
<h2 id="${id}">${escaped(group)}</h2>
<ul class="links">
${shown.map(itemOf).join('\n')}
</ul>
</section>`;
}

function itemOf({ path, title, text }: Link) {
  const link = `<a href="${escaped(path.slice(1))}">${escaped(title)}</a>`;
  return `<li>${link}<code>${escaped(path)}</code><p>${escaped(text)}</p></li>`;
}
