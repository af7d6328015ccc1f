import { spawnSync } from 'node:child_process';

/** A command of a block, and what the page says that it answers. */
export interface Command {
  text: string;
  /** Of the last answer that curl got. */
  status?: number;
  /** What it prints; `...` stands for anything. */
  output?: string;
}

/** The first line of an answer in a comment: a status, JSON, or headers. */
const answer = /^# (?:(\d{3})(?= |$) ?)?((?:[{[]|HTTP\/).*)?$/;

/**
 * Splits a block into its commands. Comment lines right behind a command that begin with a status, JSON or `HTTP/` are
 * its answer; what stands behind two spaces there is for readers.
 */
export function commandsIn(block: string): Command[] {
  const commands: Command[] = [];
  let text = '';
  let answered: Command | undefined;
  for (const line of block.split('\n')) {
    const before = commands.at(-1);
    const [found, status, output] = answer.exec(line) ?? [];
    if (answered && line.startsWith('#')) {
      answered.output = `${answered.output ?? ''}\n${told(line.slice(1))}`;
    } else if (text === '' && before && found && (status || output)) {
      if (status) before.status = Number(status);
      if (output) before.output = told(output);
      answered = before;
    } else {
      answered = undefined;
      text += `${line}\n`;
      if (!isWhole(text)) continue;
      if (text.replaceAll(/^#.*$/gm, '').trim() !== '') commands.push({ text });
      text = '';
    }
  }
  if (text.trim() !== '') throw new Error(`This command has no end:\n${text}`);
  return commands;
}

const told = (text: string) => text.replace(/ {2,}\S.*$/, (rest, at) => (at > 0 ? '' : rest));

/** Whether a shell would run it: it is no error so far, a here-document has ended, and no line goes on. */
function isWhole(text: string): boolean {
  const { status, stderr } = spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' });
  return status === 0 && stderr === '' && !text.endsWith('\\\n');
}

/** Whether an output is what a page shows, whatever the white space; `...` stands for anything. */
export function isShown(shown: string, output: string): boolean {
  const packed = shown.replaceAll(/\s/g, '');
  const pattern = packed.split('...').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${pattern.join('.*?')}$`).test(output.replaceAll(/\s/g, ''));
}

/** The same for an answer with its headers: each line that is shown is there. */
export function areShown(shown: string, output: string): boolean {
  const lines = output.toLowerCase().split(/\r?\n/);
  return shown.split('\n').every((line) => lines.some((one) => isShown(line.toLowerCase(), one)));
}
