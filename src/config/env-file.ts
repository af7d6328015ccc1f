import { parseEnv } from 'node:util';
import { readText } from './text-file.ts';

/** Lines that set a variable, say nothing or are comments. */
const settingLines =
  /^(?:[ \t]*(?:(?:export +)?[\w.-]+[ \t]*=[ \t]*(?:(["'`])[\s\S]*?\1[^\n]*|[^"'`\n][^\n]*)?|#[^\n]*)?(?:\n|$))*/;

/** `parseEnv` would take the next line for the value, and keep `export`. */
const noValue = /^[ \t]*(?:export +)?([\w.-]+)[ \t]*=[ \t]*$/gm;

/**
 * Reads the variables of a file.
 *
 * @throws Error for a file that cannot be read, or a line that sets no variable
 */
export function readEnvFile(path: string): NodeJS.Dict<string> {
  const text = readText(path);
  const [understood = ''] = settingLines.exec(text) ?? [];
  if (understood === text) return parseEnv(text.replace(noValue, '$1='));
  const line = understood.split('\n').length;
  throw new Error(
    `${path}, line ${line} sets no variable: write NAME=value, and close quotes`,
  );
}

/** A sentence for each name that differs from a variable by one character. */
export function misspelt(names: string[], known: string[]) {
  const meant = new Map<string, string>();
  for (const name of known)
    for (const one of shortened(name)) meant.set(one, name);
  return names.flatMap((name) => {
    const likely = shortened(name.toUpperCase().replace(/\W/g, '_'));
    const one = likely.find((short) => meant.has(short)) ?? '';
    if (one === '' || known.includes(name)) return [];
    return `${name} is not read: did you mean ${meant.get(one)}?`;
  });
}

/**
 * A name, and it without each of its characters. Two names have one of these in
 * common if a character is wrong, missing, additional or swapped with the next.
 */
function shortened(name: string) {
  const without = (at: number) => name.slice(0, at) + name.slice(at + 1);
  return [name, ...Array.from(name, (_, at) => without(at))];
}
