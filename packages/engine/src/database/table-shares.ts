import { SharedBudget } from '../shared-budget.ts';
import { isLate } from './postgres-errors.ts';

/**
 * The connections of a pool, which tables share: a slow or locked one leaves
 * half of them to others, and several together leave a quarter.
 */
export class TableShares extends SharedBudget {
  #waiting: Array<() => void> = [];
  /** Tables whose last statement had no answer in time. */
  readonly #late = new Set<string>();

  /**
   * Runs work when its table may take a connection. Each may have one, but a late
   * table leaves the last quarter.
   */
  async use<T>(table: string, work: () => Promise<T>) {
    while (!this.#mayTake(table))
      await new Promise<void>((wake) => this.#waiting.push(wake));
    this.add(table, 1);
    try {
      const answer = await work();
      this.#late.delete(table);
      return answer;
    } catch (error) {
      if (isLate(error)) this.#late.add(table);
      throw error;
    } finally {
      this.add(table, -1);
      for (const wake of this.#waiting.splice(0)) wake();
    }
  }

  #mayTake(table: string) {
    const left = this.size - this.used;
    const isLast = left <= Math.floor(this.size / 4);
    if (isLast && this.#late.has(table)) return false;
    return this.held(table) === 0 || this.hasRoom(table, 1);
  }
}
