const endings = new Set<() => void>();

/**
 * What must happen before this process ends, however it ends, except by SIGKILL: a server that was started must not
 * outlive the test or the drill. @returns a function that takes it back
 */
export function atExit(end: () => void): () => void {
  listen();
  endings.add(end);
  return () => endings.delete(end);
}

let isListening = false;

function listen(): void {
  if (isListening) return;
  isListening = true;
  process.once('exit', () => {
    // The last first: a server before its folder.
    for (const end of [...endings].reverse()) end();
  });
  // Without a listener these end the process at once, and nothing is tidied.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
}
