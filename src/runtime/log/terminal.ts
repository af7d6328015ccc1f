import { styleText } from 'node:util';

interface LogLine {
  level: number;
  time: number;
  pid: number;
  host: string;
  msg: string;
  [member: string]: unknown;
}

/** Fastify's line repeats the address of `started`. */
const listening = /^\{.*"msg":"Server listening at [^"]*"\}\n/gm;

/**
 * Formats JSON log lines as short coloured lines. Other lines stay as they are.
 */
export function forTerminal(lines: string): string {
  return lines.replace(listening, '').replace(/^\{.*\}$/gm, (line) => {
    try {
      return formatted(JSON.parse(line));
    } catch {
      return line;
    }
  });
}

function formatted({
  level,
  time,
  pid: _pid,
  host: _host,
  msg,
  ...members
}: LogLine) {
  const at = styleText('dim', new Date(time).toTimeString().slice(0, 8));
  return `${at} ${members.req && members.ms !== undefined ? requestOf(members, msg) : eventOf(level, msg, members)}`;
}

/**
 * `GET /v1/pets 200 12 ms key 1`; GraphQL adds its operation, a failure its
 * code.
 */
function requestOf(
  {
    req,
    api,
    operation,
    fields,
    status,
    code,
    ms,
    key,
  }: Record<string, unknown>,
  msg: string,
) {
  const { method, path } = req as { method: string; path: string };
  const name =
    api === 'graphql'
      ? (operation ?? (fields as string[] | undefined)?.join(' '))
      : undefined;
  const colour =
    status === undefined || Number(status) >= 500
      ? 'red'
      : code || Number(status) >= 400
        ? 'yellow'
        : 'green';
  const result = styleText(
    colour,
    [status ?? msg, code].filter(Boolean).join(' '),
  );
  return [
    method,
    path,
    name,
    result,
    `${Math.round(Number(ms))} ms`,
    key !== undefined && `key ${key}`,
  ]
    .filter(Boolean)
    .join(' ');
}

function eventOf(
  level: number,
  msg: string,
  { config: _, err, ...members }: Record<string, unknown>,
) {
  const text = (value: unknown) =>
    typeof value === 'object' ? JSON.stringify(value) : `${value}`;
  const details = Object.entries(members).map(
    ([name, value]) => `${name} ${text(value)}`,
  );
  const event =
    level >= 50
      ? styleText('red', msg)
      : level >= 40
        ? styleText('yellow', msg)
        : msg;
  // A terminal would interpret control characters.
  const line =
    details.length > 0
      ? `${event}  ${styleText('dim', details.join(', ').replace(/\p{Cc}/gu, '?'))}`
      : event;
  const { stack } = (err ?? {}) as { stack?: string };
  return stack ? `${line}\n${stack.replace(/[^\P{Cc}\n]/gu, '?')}` : line;
}
