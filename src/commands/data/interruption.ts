/** Why work was given up: somebody wanted it to end. */
export class Interruption extends Error {
  constructor(
    /** What the process ends with, as a shell has it. */
    readonly exitCode: number,
  ) {
    super('interrupted');
  }
}

/** How long (ms) one Ctrl-C may arrive again: from the terminal, from npm, and from the launcher of another Node.js. */
const echo = 500;

/** Aborts at the first Ctrl-C or `kill`; a second one ends the process as it would any other. */
export function onInterruption(): AbortSignal {
  const controller = new AbortController();
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.on(signal, () => {
      if (controller.signal.aborted) return;
      controller.abort(new Interruption(exitCode));
      setTimeout(() => {
        process.removeAllListeners('SIGINT').removeAllListeners('SIGTERM');
      }, echo).unref();
    });
  }
  return controller.signal;
}
