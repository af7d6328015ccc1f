/**
 * The share of each value in percent, such as of the requests that each worker
 * has served.
 */
export function sharesOf(
  values: string[],
): Array<[value: string, percent: number]> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts]
    .sort()
    .map(([value, count]) => [
      value,
      Math.round((100 * count) / values.length),
    ]);
}
