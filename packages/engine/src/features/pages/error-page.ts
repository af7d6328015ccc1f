import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isRead, varyBy } from '../../api/http/negotiation.ts';
import { origin } from '../../api/http/server.ts';
import type { StoreError } from '../../errors.ts';
import { asset, escaped, fill, policyOf, styleOf } from './html.ts';
import { prefersHtml, type Site } from './site.ts';

/**
 * The page that a browser gets in place of an Error body, at an address outside
 * of the APIs. Without a key it is the same for every address, so it tells
 * nothing about which of them exist.
 */
export function errorPage(
  site: Site,
): NonNullable<FastifyInstance['sendErrorPage']> {
  const style = styleOf('front-page.css');
  const policy = policyOf(style.source);
  const page = fill(asset('error-page.html').toString(), {
    style: style.element,
  });
  return (failure, request, reply) => {
    if (!isForPage(failure, request)) return false;
    varyBy(reply, 'Accept');
    if (!prefersHtml(request)) return false;
    const home = escaped(origin(request));
    const link = `, the <a href="${home}/guide">guides</a>`;
    const guides = site.isServed('/guide') ? link : '';
    const html = fill(page, { ...shownOf(failure), home, guides });
    site.sendPage(reply, { html, policy }, site.bar('', `${home}/`));
    return true;
  };
}

function shownOf({ status, message }: StoreError) {
  if (status !== 401) return { title: 'Not found', message: escaped(message) };
  return {
    title: 'An API key is needed',
    message: 'Without a valid API key, nothing is shown at this address.',
  };
}

/**
 * Decides by the URL, as the router decodes it, because a 401 must not reveal
 * whether a route exists.
 */
function isForPage(
  { status }: StoreError,
  { method, originalUrl }: FastifyRequest,
) {
  // `decodeURI` throws if one part of the path cannot be decoded; this decodes
  // the others.
  const decoded = originalUrl.replace(/%([2-7][\da-f])/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const isApi = /^(?:https?:\/\/[^/?#]*)?\/(?:v1|graphql)(?![\w-])/i.test(
    decoded,
  );
  return (status === 401 || status === 404) && isRead(method) && !isApi;
}
