import { SharedBudget } from '#engine/shared-budget.js';
import { describe, expect, test } from '../support/jest.ts';

/** What callers share: each leaves room for the next one. */

describe('a shared budget', () => {
  /** What each of these callers gets who take one by one, in turn. */
  const sharesOf = (size: number, ...callers: string[]) => {
    const budget = new SharedBudget(size);
    const shares = callers.map(() => 0);
    for (let turn = 0; turn < size; turn += 1) {
      for (const [at, caller] of callers.entries())
        if (budget.take(caller)) shares[at] = (shares[at] ?? 0) + 1;
    }
    return shares;
  };

  test.each([
    [['a'], [60]],
    [
      ['a', 'b'],
      [40, 40],
    ],
    [
      ['a', 'b', 'c'],
      [30, 30, 30],
    ],
  ])('gives %j equal shares, and keeps one more', (callers, shares) => {
    expect(sharesOf(120, ...callers)).toEqual(shares);
  });

  test('counts what a caller is about to take twice: it would be held, and not left', () => {
    const budget = new SharedBudget(120);
    expect(budget.take('a', 30)).toBe(true);
    expect(budget.take('a', 31)).toBe(false);
    expect(budget.take('a', 30)).toBe(true);
    expect(budget.take('b', 31)).toBe(false);
    expect(budget.take('b', 30)).toBe(true);
  });

  test('has room for a caller, whatever others took before', () => {
    const budget = new SharedBudget(120);
    for (let n = 0; n < 120; n += 1) budget.take('greedy');
    expect(budget.take('other', 30)).toBe(true);
    expect(budget.take('other')).toBe(false);
    expect(budget.excess('greedy')).toBe(30);
    budget.add('greedy', -60);
    expect(budget.take('other', 15)).toBe(true);
  });

  test('gives the first any amount, and nothing to others until it is given back', () => {
    const budget = new SharedBudget(10);
    expect(budget.take('a', 100)).toBe(true);
    expect([budget.take('a'), budget.take('b')]).toEqual([false, false]);
    budget.add('a', -100);
    expect(budget.take('b')).toBe(true);
  });

  test('counts what cannot be refused', () => {
    const budget = new SharedBudget(10);
    budget.add('a', 20);
    expect(budget.take('b')).toBe(false);
    expect(budget.excess('a')).toBe(30);
  });
});
