#!/usr/bin/env node
// This file and node.js must run on Node 18, because an older Node.js starts the right one.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { onSupportedNode, root } from './node.js';

onSupportedNode(async () => {
  const { enableCompileCache } = await import('node:module');
  // V8's compile cache halves the start time. Workers use it, too.
  process.env.NODE_COMPILE_CACHE ||= join(root, 'dist', 'compile-cache');
  enableCompileCache(process.env.NODE_COMPILE_CACHE);
  const { ensureBuilt } = await import('./build.js');
  if (await ensureBuilt()) await import(pathToFileURL(join(root, 'dist/src/cli.js')).href);
});
