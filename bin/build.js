// `npm run build`: as the launcher builds, but said to.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onSupportedNode } from './launcher/node.js';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

onSupportedNode(root, async () => {
  const { ensureBuilt } = await import('./launcher/freshness.js');
  await ensureBuilt(root);
});
