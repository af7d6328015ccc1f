import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import { pageHeaders } from '../http/headers.ts';
import { bundle } from './bundle.ts';
import type { Example } from './example.ts';
import { dataElement, type Page, servePage } from './page.ts';

export interface GraphiQLOptions {
  examples: Example[];
}

// Monaco sets styles from its script, and its style sheet has fonts and pictures in it.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  'font-src data:',
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join(';');

/** GraphiQL at `/graphiql`, with all that it loads. It needs no key, as its user has one, and nothing from elsewhere. */
export async function graphiQL(app: FastifyInstance, { examples }: GraphiQLOptions): Promise<void> {
  const built = bundle();
  if (!built) {
    // A developer's compiler was run without the rest of the build.
    app.log.warn('GraphiQL is not served, because dist/graphiql is missing: remove dist, and build again');
    return;
  }
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, public: true };
  });
  servePage(app, '/graphiql', pageOf(`graphiql/${built.version}`, examples));
  await app.register(fastifyStatic, {
    root: built.folder,
    // The folder is named by what is in it.
    prefix: `/graphiql/${built.version}/`,
    immutable: true,
    maxAge: '1y',
    index: false,
    preCompressed: true,
    // Workers have the policy of their own script.
    setHeaders: (reply) => reply.headers(pageHeaders(policy)),
  });
}

function pageOf(files: string, examples: Example[]): Page {
  // All addresses are relative: a proxy may serve this under a path of its own.
  const html = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>GraphiQL · Animal Store</title>
<link rel="icon" href="favicon.ico">
<link rel="stylesheet" href="docs/static/theme.css">
<link rel="stylesheet" href="${files}/page.css">
${dataElement('examples', examples)}
<script type="module" src="${files}/page.js"></script>
</head>
<body>
<div id="root"><noscript>GraphiQL needs JavaScript.</noscript></div>
</body>
</html>
`;
  return { html, policy };
}
