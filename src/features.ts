import type { Feature } from './feature.ts';
import { assistants } from './features/assistants/index.ts';
import { backup } from './features/backup/index.ts';
import { compiledExecution } from './features/compiled-execution/index.ts';
import { embeddedStore } from './features/embedded-store/index.ts';
import { federation } from './features/federation/index.ts';
import { metrics } from './features/metrics/index.ts';
import { pages } from './features/pages/index.ts';
import { quota } from './features/quota/index.ts';
import { readNodes } from './features/read-nodes/index.ts';
import { studio } from './features/studio/index.ts';
import { tokens } from './features/tokens/index.ts';
import { traces } from './features/traces/index.ts';
import { transfer } from './features/transfer/index.ts';
import { trustedDocuments } from './features/trusted-documents/index.ts';
import { workers } from './features/workers/index.ts';

/**
 * The optional parts, in the order in which they start and see a request.
 * docs/leave-parts-out.md says how to delete one.
 */
export const features: readonly Feature[] = [
  workers,
  metrics,
  traces,
  embeddedStore,
  backup,
  tokens,
  readNodes,
  quota,
  transfer,
  assistants,
  pages,
  compiledExecution,
  trustedDocuments,
  federation,
  studio,
];
