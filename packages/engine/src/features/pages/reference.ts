import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../../config/config.ts';
import { asset, policyOf } from './html.ts';
import type { Site } from './site.ts';

/**
 * Swagger UI's files from @fastify/swagger-ui, because swagger-ui-dist has a
 * postinstall script.
 */
const swaggerUi = fileURLToPath(
  new URL(
    '.',
    import.meta.resolve('@fastify/swagger-ui/static/swagger-ui-bundle.js'),
  ),
);

/**
 * Serves `/docs`, the REST reference, where a user with a key can try every
 * operation. It loads no external files.
 */
export function serveReference(site: Site) {
  const policy = policyOf(
    "script-src 'self'",
    "style-src 'self'",
    // Swagger UI's style sheet embeds its icons.
    "img-src 'self' data:",
    "connect-src 'self'",
  );
  site.servePage('/docs', () => asset('reference.html'), policy);
  // Also the files that the other pages share.
  site.serveFiles('/docs/static', join(root, 'web/assets/static'));
  for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css']) {
    site.serveFile(`/docs/static/${name}`, () =>
      readFileSync(swaggerUi + name),
    );
  }
}
