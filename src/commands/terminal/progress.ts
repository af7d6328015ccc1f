/** Is told how far something is, now and then. */
export type Progress = (name: string, done: number, total?: number) => void;

const [width, interval] = [24, 100];

/** One line that is written over; nothing where nobody looks. */
export function progressOn(stream: NodeJS.WriteStream): Progress {
  if (!stream.isTTY) return () => undefined;
  const began = performance.now();
  let shown = Number.NEGATIVE_INFINITY;
  return (name, done, total) => {
    const now = performance.now();
    if (now - shown < interval) return;
    shown = now;
    const speed = Math.round(done / ((now - began) / 1000));
    stream.write(`\r\x1b[2K${name}: ${total ? `${bar(done / total)} ` : ''}${done} (${speed}/s)\r`);
  };
}

function bar(share: number): string {
  const filled = Math.round(Math.min(share, 1) * width);
  return `[${'#'.repeat(filled).padEnd(width, '.')}] ${Math.floor(Math.min(share, 1) * 100)}%`;
}

/** Removes the line again, before what is said next. */
export function clearLine(stream: NodeJS.WriteStream): void {
  if (stream.isTTY) stream.write('\r\x1b[2K');
}
