import { SharedBudget } from '../shared-budget.ts';

/**
 * The connections of a pool, which tables share: a slow or locked one leaves
 * half of them to others.
 */
export class TableShares extends SharedBudget {
  #waiting: Array<() => void> = [];

  /** Runs work when its table may take a connection; each may have one. */
  async use<T>(table: string, work: () => Promise<T>) {
    while (this.held(table) > 0 && !this.hasRoom(table, 1))
      await new Promise<void>((wake) => this.#waiting.push(wake));
    this.add(table, 1);
    try {
      return await work();
    } finally {
      this.add(table, -1);
      for (const wake of this.#waiting.splice(0)) wake();
    }
  }
}
