import { globSync, readFileSync } from 'node:fs';
import { lexer, type Tokens } from 'marked';

/** A fenced block of a page. */
export interface Block {
  page: string;
  /** The line of its fence, for messages. */
  line: number;
  /** The word after the fence. */
  language: string;
  text: string;
}

/**
 * The pages for readers. Every command and snippet in them is run or checked.
 */
export const pages = [
  'README.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  ...globSync('docs/*.md').sort(),
  'clients/typescript/README.md',
  'examples/README.md',
  ...globSync('examples/*/README.md').sort(),
  'bench/README.md',
  'test/README.md',
];

/** The blocks of a page, without those in lists and quotes. */
export function blocksOf(page: string): Block[] {
  let line = 1;
  const tokens = lexer(readFileSync(page, 'utf8')) as Tokens.Code[];
  return tokens.flatMap(({ type, raw, lang: language = '', text }) => {
    const at = line;
    line += raw.split('\n').length - 1;
    return type === 'code'
      ? [{ page, line: at, language, text: `${text}\n` }]
      : [];
  });
}

/** The name of the test of a block. */
export const nameOf = ({ page, line, language, text }: Block) =>
  `${page}:${line} ${language || 'output'}: ${text.trim().split('\n', 1)[0]}`;
