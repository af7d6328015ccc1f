#!/usr/bin/env node
// An older Node gets as far as finding the right one: this file and what it imports at once run on Node 18.
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { onSupportedNode } from './launcher/node.js';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

onSupportedNode(root, async () => {
  const { keepCompiled } = await import('./launcher/compile-cache.js');
  keepCompiled(root);
  const { ensureBuilt } = await import('./launcher/freshness.js');
  if (await ensureBuilt(root)) await import(pathToFileURL(join(root, 'dist/src/cli.js')).href);
});
