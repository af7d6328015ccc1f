import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { policyOf } from './html.ts';
import type { Site } from './site.ts';

/** Serves the pages of a folder at `/guide`, and below it. */
export function serveGuides(site: Site, guides: string) {
  if (!existsSync(guides)) {
    site.app.log.warn(
      'the guides are not served, because dist/guide is missing: run `npm ci`, and build again',
    );
    return;
  }
  const policy = policyOf(
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
  );
  for (const file of globSync('*.html', { cwd: guides })) {
    const name = basename(file, '.html');
    const path = name === 'index' ? '/guide' : `/guide/${name}`;
    site.servePage(path, () => readFileSync(join(guides, file)), policy);
  }
  const index = () => readFileSync(join(guides, 'search-index.js'));
  site.serveFile('/guide/search-index.js', index);
}
