import { globSync, readFileSync } from 'node:fs';

/** A fenced block of a page. */
export interface Block {
  page: string;
  /** Of its fence, for messages. */
  line: number;
  /** What stands behind the fence. */
  language: string;
  text: string;
}

/** What a reader is sent to: every command and snippet in them is run or checked. */
export const pages = [
  'README.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  ...[
    'docs/*.md',
    'clients/typescript/README.md',
    'examples/README.md',
    'examples/*/README.md',
    'bench/README.md',
  ].flatMap((pattern) => globSync(pattern).sort()),
];

export const blocksOf = (page: string): Block[] => blocksIn(page, readFileSync(page, 'utf8'));

/** @param text of the page, in Markdown; fences stand at the beginning of a line */
export function blocksIn(page: string, text: string): Block[] {
  const blocks: Block[] = [];
  let open: Block | undefined;
  for (const [at, line] of text.split('\n').entries()) {
    const [, language] = /^ {0,3}```(.*)$/.exec(line) ?? [];
    if (language === undefined) {
      if (open) open.text += `${line}\n`;
    } else if (open) {
      blocks.push(open);
      open = undefined;
    } else open = { page, line: at + 1, language: language.trim(), text: '' };
  }
  if (open) throw new Error(`${page}:${open.line}: this block has no end.`);
  return blocks;
}

/** What a test of a block is called. */
export const nameOf = ({ page, line, language, text }: Block) =>
  `${page}:${line} ${language || 'output'}: ${text.trim().split('\n', 1)[0]}`;
