import { AsyncLocalStorage } from 'node:async_hooks';
import { currentTransaction, Database } from '#engine/database/database.js';

/**
 * Refuses each statement of a request that has not waited for its turn. Only
 * tests do: in every statement of production it would cost time.
 */
const turn = new AsyncLocalStorage<true>();

/** Of the start, and of work that no request waits for. */
const background = [
  'add_deprecated_calls',
  'citus_group',
  'encoding',
  'has_citus',
  'is_sharded',
  'remove_expired_idempotency_keys',
  'select_expired_idempotency_keys',
  'touch_keys',
];

type Send = (
  this: Database,
  ...sent: Parameters<Database['rows']>
) => Promise<unknown[][]>;

export function checkTurns() {
  const { prototype } = Database;
  const { batched, rows, read } = prototype;
  prototype.batched = function (run, options) {
    const inTurn: typeof run = (inputs) => turn.run(true, run, inputs);
    return batched.call(this, inTurn as never, options) as never;
  };
  prototype.rows = inTurnOnly(rows as Send) as typeof rows;
  prototype.read = inTurnOnly(read as Send) as typeof read;
}

function inTurnOnly(send: Send): Send {
  return async function (statement, values) {
    const { name } = statement;
    const isOfTest = name === '' || /^(?:test |empty)/.test(name);
    const mayPass = isOfTest || background.includes(name);
    if (!mayPass && !turn.getStore() && !currentTransaction())
      throw new Error(`The statement ${name} has not waited for its turn.`);
    return send.call(this, statement, values);
  };
}
