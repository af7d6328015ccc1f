import { eventually, type Running } from './process.ts';

export interface LogLine {
  level: number;
  msg: string;
  worker?: number;
  /** Of the process that wrote the line. */
  pid?: number;
  /** Of the worker that the line is about. */
  workerPid?: number;
  [field: string]: unknown;
}

/**
 * The lines of the log so far, or those with this message. @throws Error when a
 * line is not whole
 */
export function linesOf(text: string, message?: string): LogLine[] {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  // The welcome is plain text.
  const lines = whole
    .split('\n')
    .filter((line) => line.includes('"level"') || line.includes('"msg"'));
  const all: LogLine[] = lines.map((line) => JSON.parse(line));
  return message === undefined ? all : all.filter(({ msg }) => msg === message);
}

/** The lines of the log about requests for this path. */
export function requestsFor(text: string, path: string): LogLine[] {
  return linesOf(text, 'answered').filter(
    ({ req }) => (req as { path: string }).path === path,
  );
}

/** Waits for this many lines with this message. @returns the lines */
export async function untilLogged(
  { output }: Running,
  message: string,
  times = 1,
): Promise<LogLine[]> {
  await eventually(async () => linesOf(output.stdout, message).length >= times);
  return linesOf(output.stdout, message);
}
