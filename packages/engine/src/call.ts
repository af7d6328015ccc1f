import { AsyncLocalStorage } from 'node:async_hooks';
import { hash } from 'node:crypto';

/**
 * Who calls: a stored key, the bootstrap key (id 0), or a subject of the
 * identity provider, which has a row, too.
 */
export interface Caller {
  readonly id: number;
  readonly name: string;
  /** As in `read` or `visits:read`; none for a token without one of ours. */
  readonly scopes: readonly string[];
  /**
   * The first characters of the secret that the caller sent; a rotated key has
   * two secrets. Of a subject, its hash.
   */
  readonly hint?: string;
  /** Of a subject: the name that its token has (`sub`). */
  readonly subject?: string;
  /** Of a subject: the tenant that its token names. */
  readonly tenant?: string;
  /** Runs a command. */
  readonly isOperator?: boolean;
  /** Of a subject: the provider's first name of each scope, for a 403. */
  readonly scopeNames?: Readonly<Record<string, string>>;
}

/** An idempotency key, with which a creation is executed at most once. */
export interface Claim {
  /** Id of the client's API key; 0 for the bootstrap key, and for an import. */
  readonly keyId: number;
  /** Operation id, like `createPet`. */
  readonly operation: string;
  /** SHA-256 of the idempotency key. */
  readonly hash: Buffer;
}

/** Charges the work of a call to the quota of its caller. */
export interface Meter {
  run<Result>(
    mayCost: number,
    operation: () => Promise<Result>,
  ): Promise<Result>;
  reserve(mayCost: number): Promise<void>;
  charge(units: number): Promise<void>;
  /**
   * Returns unused units.
   *
   * @returns headers with what is left
   */
  release(): Promise<Record<string, string>>;
}

/** A GraphQL operation. One of no valid document has a name only. */
interface CalledOperation {
  readonly name: string | undefined;
  /** Names of its root fields in the schema, by response key. */
  readonly fields?: ReadonlyMap<string, string>;
  /** The distinct ones of these names. */
  readonly fieldNames?: readonly string[];
  /** True for several mutations, which run one after another. */
  readonly isSeries?: boolean;
}

/** The transaction in which this code runs. */
export const openTransaction = new AsyncLocalStorage<{
  /** Called after the commit. */
  readonly listeners: Array<() => void>;
}>();

/** Calls a listener when the rows are stored: now, or after the commit. */
export function whenCommitted(listener: () => void) {
  const transaction = openTransaction.getStore();
  if (transaction) transaction.listeners.push(listener);
  else listener();
}

const operator: Caller = {
  id: -1,
  name: 'operator',
  scopes: ['write', 'all'],
  isOperator: true,
};

/**
 * The name of who calls: a key, or a subject. No key has the name of a subject.
 */
export function actorIn({ origin: { caller } }: Call) {
  if (!caller) return 'service';
  const { id, subject, isOperator } = caller;
  if (isOperator) return 'operator';
  if (subject === undefined) return `key:${id}`;
  const isShort = isText(subject) && subject.length <= 255;
  const name = isShort ? subject : `sha256:${hash('sha256', subject)}`;
  return `subject:${name}`;
}

/** False for a text that PostgreSQL cannot store. */
export function isText(value: string | undefined) {
  return value?.isWellFormed() === true && !value.includes('\0');
}

/**
 * What a call of a service belongs to: its caller, its deadline, its
 * idempotency key, what it costs, and what its log line says. Without options
 * it has no deadline, as in commands, tests and polls.
 */
export class Call {
  /** When it began (`performance.now()`). */
  readonly arrived = performance.now();
  /** When it is over (`performance.now()`). */
  deadline: number;
  /** The authenticated caller; null on public routes and in polls. */
  caller: Caller | null = null;
  /** undefined without a quota. */
  meter: Meter | undefined;
  /** Of its next creation; undefined without an `Idempotency-Key`. */
  claim: Claim | undefined;
  /** Number of items read or written. */
  items = 0;
  /** Whether it may have written: its response must be sent. */
  isWrite = false;
  /**
   * True when earlier requests created everything; undefined without an
   * idempotency key.
   */
  isReplay: boolean | undefined;
  /** How long (ms) any of its inputs waited for their batches. */
  waited: number | undefined;
  #leftAt = 0;
  /** The size of its largest batch. */
  batch: number | undefined;
  /** Milliseconds until a streamed response began, if it is streamed. */
  streamedAfter: number | undefined;
  /** The GraphQL operation: the client's name for it, then all of it. */
  operation: CalledOperation | undefined;
  /** The error code of the response; the first of several. */
  code: string | undefined;
  /**
   * Why the service has closed the connection before the end: its client takes
   * nothing for too long, or the unread answers of its key exceed their share.
   */
  cut: 'slow' | 'unread' | undefined;
  /** Why its key or token was refused. */
  reason: string | undefined;
  /** What features and modules add to its log line. */
  details: Record<string, string | number | boolean> | undefined;
  /** Query parameters that the operation lacks, some at most. */
  unknown: string[] | undefined;
  /**
   * What it does is rolled back, which is told to this, and takes no idempotency
   * key.
   */
  onRolledBack: (() => void) | undefined;
  /** The id of its request; undefined without one. */
  request: string | undefined;
  /** Of the trace that it belongs to, for its log line. */
  traceId: string | undefined;
  /** The call of the request. */
  origin: Call = this;

  /**
   * @param timeout in milliseconds
   * @param connection of the client
   */
  constructor(
    private readonly timeout = Number.POSITIVE_INFINITY,
    private readonly connection?: { readonly destroyed: boolean },
  ) {
    this.deadline = this.arrived + timeout;
  }

  /** For commands and tests, to which the rows of all callers are open. */
  static ofOperator() {
    return Object.assign(new Call(), { caller: operator });
  }

  /** True when the client has disconnected: pending work can be skipped. */
  get hasLeft() {
    return this.connection?.destroyed ?? false;
  }

  /** For an upload, which has its own limit. */
  restartDeadline() {
    this.deadline = performance.now() + this.timeout;
  }

  /**
   * For work after the answer has begun: a call with its own deadline and its
   * own count.
   */
  continued() {
    const { caller, meter, operation, origin } = this;
    const next = new Call(this.timeout, this.connection);
    return Object.assign(next, { caller, meter, operation, origin });
  }

  /**
   * For what code does for another one, such as a creation for a customer:
   * rows and rights are theirs. Traces name who calls.
   */
  onBehalfOf(other: Pick<Caller, 'scopes' | 'subject' | 'tenant'>) {
    const { deadline, onRolledBack } = this;
    const { id, name } = this.caller ?? operator;
    return Object.assign(this.continued(), {
      caller: { id, name, ...other },
      claim: this.nextClaim(),
      deadline,
      onRolledBack,
      count: this.count.bind(this),
      replayed: this.replayed.bind(this),
    });
  }

  /**
   * Counts the time of inputs that wait together once.
   *
   * @param since when an input began to wait for its batch
   * @param leftAt when this batch was sent
   */
  batched(since: number, leftAt: number, size: number) {
    const waited = leftAt - Math.max(since, this.#leftAt);
    this.#leftAt = leftAt;
    this.waited = (this.waited ?? 0) + waited;
    this.batch = Math.max(this.batch ?? 0, size);
  }

  /** In a transaction, they count when it is committed. */
  count(items: number) {
    const add = () => {
      this.items += items;
    };
    if (this.onRolledBack) add();
    else whenCommitted(add);
  }

  /**
   * The claim of a creation. Each further one has a claim of its own, by those
   * before it; in `createInTurn` by its place. One rule for both would change
   * hashes that are stored.
   */
  nextClaim() {
    const { claim } = this;
    this.claim = claim && {
      ...claim,
      hash: hash('sha256', claim.hash, 'buffer'),
    };
    return claim;
  }

  /** @param isReplay whether an earlier request executed a creation */
  replayed(isReplay: boolean) {
    this.isReplay = isReplay && this.isReplay !== false;
  }
}
