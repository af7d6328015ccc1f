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

type Members = Record<string, unknown>;

function formatted({ pid: _pid, host: _host, ...line }: LogLine) {
  const { level, time, msg, ...members } = line;
  const at = styleText('dim', new Date(time).toTimeString().slice(0, 8));
  const isRequest = members.req && members.ms !== undefined;
  const rest = isRequest ? requestOf(members, msg) : eventOf(line, members);
  return `${at} ${rest}`;
}

/**
 * `GET /v1/pets 200 12 ms key 1`; GraphQL adds its operation, a failure its
 * code.
 */
function requestOf({ req, ms, key, ...members }: Members, msg: string) {
  const { api, operation, fields = [], status = msg, code } = members;
  const { method, path } = req as Members;
  const words = [method, path];
  const name = operation ?? (fields as string[]).join(' ');
  if (api === 'graphql' && name) words.push(name);
  const result = code ? `${status} ${code}` : `${status}`;
  words.push(styleText(colourOf(Number(members.status ?? 500), code), result));
  words.push(`${Math.round(Number(ms))} ms`);
  if (key !== undefined) words.push(`key ${key}`);
  return words.join(' ');
}

function colourOf(status: number, code: unknown) {
  if (status >= 500) return 'red';
  return code || status >= 400 ? 'yellow' : 'green';
}

function eventOf({ level, msg }: Pick<LogLine, 'level' | 'msg'>, all: Members) {
  const { config: _, err, ...members } = all;
  let line = msg;
  if (level >= 40) line = styleText(level >= 50 ? 'red' : 'yellow', msg);
  const details = Object.entries(members).map(([name, value]) => {
    const isObject = typeof value === 'object';
    return `${name} ${isObject ? JSON.stringify(value) : value}`;
  });
  // A terminal would interpret control characters.
  const plain = details.join(', ').replace(/\p{Cc}/gu, '?');
  if (plain) line += `  ${styleText('dim', plain)}`;
  const { stack } = (err ?? {}) as { stack?: string };
  if (stack) line += `\n${stack.replace(/[^\P{Cc}\n]/gu, '?')}`;
  return line;
}
