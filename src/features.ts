import type { Feature } from '@animal-store/engine';
import { assistants } from '@animal-store/engine/features/assistants';
import { backup } from '@animal-store/engine/features/backup';
import { changes } from '@animal-store/engine/features/changes';
import { compiledExecution } from '@animal-store/engine/features/compiled-execution';
import { embeddedStore } from '@animal-store/engine/features/embedded-store';
import { federation } from '@animal-store/engine/features/federation';
import { metrics } from '@animal-store/engine/features/metrics';
import { pages } from '@animal-store/engine/features/pages';
import { quota } from '@animal-store/engine/features/quota';
import { readNodes } from '@animal-store/engine/features/read-nodes';
import { studio } from '@animal-store/engine/features/studio';
import { tokens } from '@animal-store/engine/features/tokens';
import { traces } from '@animal-store/engine/features/traces';
import { transfer } from '@animal-store/engine/features/transfer';
import { trustedDocuments } from '@animal-store/engine/features/trusted-documents';
import { webhooks } from '@animal-store/engine/features/webhooks';
import { workers } from '@animal-store/engine/features/workers';

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
  changes,
  webhooks,
  assistants,
  pages,
  compiledExecution,
  trustedDocuments,
  federation,
  studio,
];
