export interface EmbeddedOptions {
  /** Called when the store's thread dies. The store is unusable afterwards. */
  onLost?: (error: Error) => void;
  /** Also opens a retired store. */
  evenRetired?: boolean;
  /**
   * How long (ms) a connection may be silent in a transaction; 30 seconds when
   * absent.
   */
  maxSilence?: number;
}

/** What the thread that owns the store is started with. */
export interface WorkerData extends Omit<EmbeddedOptions, 'onLost'> {
  dataDir: string;
  socketPath: string;
}

/**
 * The thread's message: it owns the store, or another process does and accepts
 * connections.
 */
export type Role = 'owner' | 'guest';
