#!/usr/bin/env node
// This file and node.js must run on Node 18, because an older Node.js starts
// the right one.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isBundled, onSupportedNode, root } from './node.js';

onSupportedNode(async () => {
  const { enableCompileCache } = await import('node:module');
  // V8's compile cache halves the start time. Workers use it, too.
  process.env.NODE_COMPILE_CACHE ||= join(root, 'dist', 'compile-cache');
  enableCompileCache(process.env.NODE_COMPILE_CACHE);
  // The image has the result of the build, and no sources.
  const isBuilt =
    !existsSync(join(root, 'src')) ||
    (await (await import('./build.js')).ensureBuilt());
  if (isBuilt)
    await import(
      pathToFileURL(
        join(root, 'dist', isBundled() ? 'bundle' : 'src', 'cli.js'),
      ).href
    );
});
