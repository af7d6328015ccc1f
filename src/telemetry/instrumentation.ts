import type { FastifyInstance } from 'fastify';
import type { Database } from '../database/database.ts';
import type { DatabaseWatcher } from '../database/watcher.ts';
import type { OperationObserver } from '../graphql/observers.ts';
import type { RequestObserver } from '../http/observers.ts';
import type { LookUpResult } from '../keys/api-key.service.ts';

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
