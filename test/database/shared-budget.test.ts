import { FairQueue } from '../../src/database/batches.ts';
import { SharedBudget } from '../../src/shared-budget.ts';
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

describe('a fair queue', () => {
  test('gives one of each caller in turn, also across batches', () => {
    const queue = new FairQueue<string>(100);
    for (const n of [1, 2, 3, 4]) queue.push('a', `a${n}`);
    for (const n of [1, 2]) queue.push('b', `b${n}`);
    queue.push(undefined, 'nobody');
    expect(queue.take(2)).toEqual(['a1', 'b1']);
    expect(queue.heads).toEqual(['nobody', 'a2', 'b2']);
    expect(queue.take(4)).toEqual(['nobody', 'a2', 'b2', 'a3']);
    expect([queue.length, queue.take(9), queue.length]).toEqual([1, ['a4'], 0]);
  });

  test('has a place for each caller, and for what has left', () => {
    const queue = new FairQueue<number>(4);
    expect([1, 2, 3].map((n) => queue.push('a', n))).toEqual([
      true,
      true,
      false,
    ]);
    expect([queue.push('b', 4), queue.push('b', 5)]).toEqual([true, false]);
    queue.filter((n) => n !== 1);
    expect([queue.length, queue.headOf('a'), queue.headOf('c')]).toEqual([
      2,
      2,
      undefined,
    ]);
    queue.take(2);
    expect([6, 7].map((n) => queue.push('c', n))).toEqual([true, true]);
  });
});
