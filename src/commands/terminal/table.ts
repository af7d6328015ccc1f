/** Formats rows with the same members as a text table, for people. */
export function table(rows: Array<Record<string, unknown>>, whenEmpty: string): string {
  const [first] = rows;
  if (!first) return whenEmpty;
  const lines = [Object.keys(first), ...rows.map((row) => Object.values(row).map(cell))];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  return lines
    .map((line) =>
      line
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function cell(value: unknown): string {
  if (value instanceof Date) return `${value.toISOString().slice(0, 19).replace('T', ' ')}Z`;
  // A terminal obeys control characters, and SUDO_USER for instance may have any.
  return value === null || value === undefined ? '-' : `${value}`.replace(/\p{Cc}/gu, '?');
}
