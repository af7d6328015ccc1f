import type { FastifyInstance } from 'fastify';
import type { LookUpResult } from '../../access/keys/api-key.service.ts';
import type { OperationObserver } from '../../api/graphql/observers.ts';
import type { RequestObserver } from '../../api/http/observers.ts';
import type { Database } from '../../storage/database/database.ts';
import type { DatabaseWatcher } from '../../storage/database/watcher.ts';

/** What the parts of the service tell those who watch it. What is empty or absent costs nothing. */
export interface Instrumentation {
  requests: RequestObserver[];
  operations: OperationObserver[];
  databases: DatabaseWatcher[];
  onLookUp?: (result: LookUpResult) => void;
  /** A deprecated operation was called with the key of this name. */
  onDeprecatedCall?: (operation: string, key: string) => void;
  /** The service has been put together. */
  onBuilt?: (app: FastifyInstance, database: Database) => void;
}
