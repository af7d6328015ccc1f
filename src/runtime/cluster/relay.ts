import type { Readable } from 'node:stream';

/**
 * Passes on what a worker prints, in whole lines. If the workers wrote to one pipe by themselves, their lines would be
 * torn: only writes of up to 4096 bytes are atomic (PIPE_BUF, pipe(7)). The rest of a line whose writer was killed is
 * left out. No longer line comes than the worker's own output takes.
 */
export function relayLines(from: Readable, to: { write(lines: string): void }): void {
  let rest = '';
  from.setEncoding('utf8').on('data', (text: string) => {
    const end = text.lastIndexOf('\n') + 1;
    if (end > 0) to.write(rest + text.slice(0, end));
    rest = end > 0 ? text.slice(end) : rest + text;
  });
}
