import type { FastifyInstance, FastifyRequest } from 'fastify';
import { acceptedTypes } from '../http/accepted-types.ts';
import { varyBy } from '../http/headers.ts';
import { origin } from '../rest/pages.ts';
import { asset } from './asset.ts';
import { type About, frontPageHtml } from './front-page.html.ts';
import { linksOf } from './links.ts';
import { hashOf, sendPage } from './page.ts';

export interface FrontPageOptions {
  /** Of this release. */
  version: string;
  /** Whether browsers get pages to explore GraphQL. */
  explorer: boolean;
}

/**
 * `/`: what this service is, and where everything is. A page for those who prefer HTML, JSON with the same links for
 * all others, also for those who accept neither (RFC 9110 section 12.4.1).
 */
export async function frontPage(app: FastifyInstance, { version, explorer }: FrontPageOptions): Promise<void> {
  const style = `${asset('theme.css')}${asset('front-page.css')}`;
  const icon = asset('icon.svg').toString();
  const policy = policyFor(style);
  let about: About;
  app.addHook('onReady', async () => {
    const { title, description = '' } = app.swagger().info as { title: string; description?: string };
    about = { name: title, version, description, links: linksOf(app, explorer) };
  });
  app.get('/', { schema: { hide: true }, config: { public: true } }, async (request, reply) => {
    const address = origin(request);
    varyBy(reply, 'Accept');
    if (!prefersHtml(request)) return { ...about, links: addressesOf(about, address) };
    return sendPage(reply, { html: frontPageHtml(about, { address, style, icon }), policy });
  });
}

function prefersHtml(request: FastifyRequest): boolean {
  return acceptedTypes(request, ['application/json', 'text/html'])[0] === 'text/html';
}

function addressesOf({ links }: About, address: string): Record<string, string> {
  return Object.fromEntries(links.map(({ name, path }) => [name, address + path]));
}

/** The one style element is allowed by its hash; the only request that the page makes is for its icon. */
function policyFor(style: string): string {
  return `default-src 'none';style-src ${hashOf(style)};img-src 'self';base-uri 'none';form-action 'none'`;
}
