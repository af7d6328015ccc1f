import type { FastifyInstance } from 'fastify';
import type { Config } from '../../config/config.ts';
import { errorPage } from './error-page.ts';
import { serveGraphiQL, serveSandbox } from './explorers.ts';
import { serveFrontPage } from './front-page.ts';
import { serveGuides } from './guides.ts';
import { asset } from './html.ts';
import { serveReference } from './reference.ts';
import { Site } from './site.ts';

/**
 * Serves the pages, which need no key, and the files that browsers and crawlers
 * request from every host.
 */
export function servePages(
  app: FastifyInstance,
  config: Config,
  hasExplorers: boolean,
) {
  const site = new Site(app, hasExplorers);
  app.decorate('sendErrorPage', errorPage(site));
  const forDay = { 'cache-control': 'public, max-age=86400' };
  site.serveFile('/favicon.ico', () => asset('favicon.ico'), forDay);
  const robots = 'User-agent: *\nDisallow: /\n';
  site.serveFile('/robots.txt', () => robots, forDay);
  serveReference(site);
  if (config.guides) serveGuides(site, config.guides);
  serveFrontPage(site, config);
  if (!hasExplorers) return;
  serveGraphiQL(site);
  serveSandbox(site);
}
