import { parseEnv } from 'node:util';
import { readText } from './text-file.ts';

/** The variable that names another file than `.env`. */
export const envFileVariable = (service: string) =>
  `${service.toUpperCase().replaceAll('-', '_')}_ENV_FILE`;

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
export function readEnvFile(path: string) {
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
  const meantBy = new Map<string, string>();
  for (const name of known)
    for (const short of shortened(name)) meantBy.set(short, name);
  const sentences: string[] = [];
  for (const name of names) {
    if (known.includes(name)) continue;
    const spelt = name.toUpperCase().replace(/\W/g, '_');
    const short = shortened(spelt).find((one) => meantBy.has(one));
    if (short === undefined) continue;
    const meant = meantBy.get(short);
    sentences.push(`${name} is not read: did you mean ${meant}?`);
  }
  return sentences;
}

/**
 * A name, and it without each of its characters. Two names have one of these in
 * common if a character is wrong, missing, additional or swapped with the next.
 */
function shortened(name: string) {
  const texts = [name];
  for (let at = 0; at < name.length; at += 1)
    texts.push(name.slice(0, at) + name.slice(at + 1));
  return texts;
}
