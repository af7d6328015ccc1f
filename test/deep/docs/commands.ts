import { spawnSync } from 'node:child_process';

/** A command of a block, and its result according to the page. */
export interface Command {
  text: string;
  /** The status of the last response that curl gets. */
  status?: number;
  /** The output; `...` stands for any text. */
  output?: string;
}

/** The first line of a result in a comment: a status, JSON, or headers. */
const resultLine = /^# (?:(\d{3})(?= |$) ?)?((?:[{[]|HTTP\/).*)?$/;

/**
 * Splits a block into its commands. Comment lines directly after a command that
 * begin with a status, JSON or `HTTP/` are its result. Text after two spaces in
 * them is a remark for readers.
 */
export function commandsIn(block: string): Command[] {
  const commands: Command[] = [];
  let text = '';
  let described: Command | undefined;
  for (const line of block.split('\n')) {
    const before = commands.at(-1);
    const [found, status, output] = resultLine.exec(line) ?? [];
    if (described && line.startsWith('#')) {
      described.output = `${described.output ?? ''}\n${withoutRemark(line.slice(1))}`;
    } else if (text === '' && before && found && (status || output)) {
      if (status) before.status = Number(status);
      if (output) before.output = withoutRemark(output);
      described = before;
    } else {
      described = undefined;
      text += `${line}\n`;
      if (!isWhole(text)) continue;
      if (text.replaceAll(/^#.*$/gm, '').trim() !== '') commands.push({ text });
      text = '';
    }
  }
  if (text.trim() !== '') throw new Error(`This command has no end:\n${text}`);
  return commands;
}

const withoutRemark = (text: string) =>
  text.replace(/ {2,}\S.*$/, (rest, at) => (at > 0 ? '' : rest));

/**
 * Whether a shell would run the text: it has no error, no open here-document
 * and no continued line.
 */
function isWhole(text: string): boolean {
  const { status, stderr } = spawnSync('bash', ['-n'], {
    input: text,
    encoding: 'utf8',
  });
  return status === 0 && stderr === '' && !text.endsWith('\\\n');
}

/**
 * Whether an output matches the page, apart from white space; `...` stands for
 * any text.
 */
export function isShown(shown: string, output: string): boolean {
  const packed = shown.replaceAll(/\s/g, '');
  const pattern = packed
    .split('...')
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${pattern.join('.*?')}$`).test(
    output.replaceAll(/\s/g, ''),
  );
}

/** Whether a response with its headers has each line of the page. */
export function areShown(shown: string, output: string): boolean {
  const lines = output.toLowerCase().split(/\r?\n/);
  return shown
    .split('\n')
    .every((line) =>
      lines.some((printed) => isShown(line.toLowerCase(), printed)),
    );
}
