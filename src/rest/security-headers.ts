import { ServerResponse } from 'node:http';
import fastifyPlugin from 'fastify-plugin';
import helmet, { type HelmetOptions } from 'helmet';

/** For JSON: nothing in it may be run, framed or guessed at. */
export const forData: HelmetOptions = {
  contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  // These concern documents.
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xFrameOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
};

/** For pages that say in their own `<meta>` element what they may load; only framing cannot be forbidden there. */
export const forPages: HelmetOptions = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: helmet.contentSecurityPolicy.dangerouslyDisableDefaultSrc, frameAncestors: ["'none'"] },
  },
  // Apollo's frame must be able to talk to the page.
  crossOriginOpenerPolicy: false,
};

/** The headers that helmet would set. They are the same every time, so helmet works once and not for every request. */
export function securityHeaders(options: HelmetOptions): Record<string, string> {
  const response = new ServerResponse({ method: 'GET' } as never);
  helmet(options)({} as never, response, () => undefined);
  return response.getHeaders() as Record<string, string>;
}

/** Adds the headers to every response. Routes that serve pages replace them. */
export const dataHeaders = fastifyPlugin(async (app) => {
  const headers = securityHeaders(forData);
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers);
    done();
  });
});
