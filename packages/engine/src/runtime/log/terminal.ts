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
export function forTerminal(lines: string) {
  return lines.replace(listening, '').replace(/^\{.*\}$/gm, (line) => {
    try {
      return shortLine(JSON.parse(line));
    } catch {
      return line;
    }
  });
}

type Members = Record<string, unknown>;

function shortLine({ pid: _pid, host: _host, ...line }: LogLine) {
  const { level, time, msg, ...members } = line;
  const at = styleText('dim', new Date(time).toTimeString().slice(0, 8));
  const isRequest = members.req && members.ms !== undefined;
  if (isRequest) return `${at} ${requestOf(members, msg)}`;
  return `${at} ${eventOf(level, msg, members)}`;
}

/**
 * `GET /v1/books 200 12 ms key 1`; GraphQL adds its operation, a failure its
 * code.
 */
function requestOf({ req, ms, key, ...members }: Members, msg: string) {
  const { api, operation, fields = [], status, code } = members;
  const { method, path } = req as Members;
  const name = operation ?? (fields as string[]).join(' ');
  const result = [status ?? msg, code].filter(Boolean).join(' ');
  const words = [
    method,
    path,
    api === 'graphql' && name,
    styleText(colourOf(members), result),
    `${Math.round(Number(ms))} ms`,
    key !== undefined && `key ${key}`,
  ];
  return words.filter(Boolean).join(' ');
}

function colourOf({ status, code }: Members) {
  const isAborted = status === undefined;
  const isFailure = isAborted || Number(status) >= 500;
  if (isFailure) return 'red';
  const isRefusal = code || Number(status) >= 400;
  return isRefusal ? 'yellow' : 'green';
}

function eventOf(level: number, msg: string, all: Members) {
  const { config: _, err, ...members } = all;
  let line = msg;
  if (level === 40) line = styleText('yellow', msg);
  if (level > 40) line = styleText('red', msg);
  const details = Object.entries(members).map(([name, value]) => {
    if (typeof value !== 'object') return `${name} ${value}`;
    return `${name} ${JSON.stringify(value)}`;
  });
  // A terminal would interpret control characters.
  const plain = details.join(', ').replace(/\p{Cc}/gu, '?');
  if (plain) line += `  ${styleText('dim', plain)}`;
  const { stack } = (err ?? {}) as { stack?: string };
  if (stack) line += `\n${stack.replace(/(?!\n)\p{Cc}/gu, '?')}`;
  return line;
}
