import { parser } from '@prometheus-io/lezer-promql';

/**
 * A metric of a query, with the labels by which it is selected, grouped or
 * matched.
 */
export interface Use {
  metric: string;
  labels: string[];
}

/**
 * The metrics of a query, by the grammar of Prometheus' own user interface.
 * Labels of `by`, `on` and the like count for all metrics inside their
 * expression.
 *
 * @throws Error when the query is invalid
 */
export function usesOf(query: string): Use[] {
  const uses: Array<Use & { from: number }> = [];
  const groups: Array<{ label: string; from: number; to: number }> = [];
  parser.parse(query).iterate({
    enter: ({ name, from, to, type, node }) => {
      if (type.isError) throw new Error(`Invalid query at ${from}: ${query}`);
      const text = query.slice(from, to);
      if (name === 'Identifier') uses.push({ metric: text, labels: [], from });
      if (name !== 'LabelName') return;
      const parent = node.parent;
      if (parent?.name === 'GroupingLabels') {
        const scope = parent.parent?.parent;
        groups.push({
          label: text,
          from: scope?.from ?? 0,
          to: scope?.to ?? query.length,
        });
      } else uses.at(-1)?.labels.push(text);
    },
  });
  return uses.map(({ metric, labels, from }) => {
    const grouped = groups
      .filter((group) => group.from <= from && from < group.to)
      .map(({ label }) => label);
    return { metric, labels: [...new Set([...labels, ...grouped])] };
  });
}
