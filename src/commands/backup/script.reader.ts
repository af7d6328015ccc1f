import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { chunksOf, linesOf } from '../files.ts';
import { rowOf, type TextRow } from './copy-text.ts';
import { firstLine, format, lastLine, type ScriptEnd, type ScriptHead } from './script.ts';

/** What a script holds, in its order: a statement, or some rows of a table. */
export type ScriptPart = { statement: string } | { table: string; rows: TextRow[] };

// A piece is as large as one that was read (rows.ts), and no larger than a message should be.
const maxRows = 1000;
const maxBytes = 4_194_304;
const longestEnd = 65_536;

/** Reads a backup. Nothing is believed before its checksum is right. */
export class ScriptReader {
  private constructor(
    private readonly file: FileHandle,
    private readonly path: string,
    readonly head: ScriptHead,
    readonly end: ScriptEnd,
  ) {}

  /** @throws Error when it is not a backup, not whole, or in the form of a later release */
  static async open(path: string): Promise<ScriptReader> {
    const file = await open(path);
    try {
      const head = await headOf(file, path);
      return new ScriptReader(file, path, head, await endOf(file, path));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.file.close();
  }

  /** Statements without those that begin and end the transaction: that is the reader's. */
  async *parts(): AsyncGenerator<ScriptPart> {
    let statement = '';
    let table: string | undefined;
    let rows: TextRow[] = [];
    let bytes = 0;
    for await (const line of textsOf(this.file)) {
      if (table !== undefined) {
        const isEnd = line === '\\.';
        if (!isEnd) rows.push(rowOf(line));
        bytes += line.length;
        if (rows.length > 0 && (isEnd || rows.length >= maxRows || bytes >= maxBytes)) {
          yield { table, rows };
          [rows, bytes] = [[], 0];
        }
        if (isEnd) table = undefined;
        continue;
      }
      if (statement === '' && line.startsWith('--')) continue;
      statement += statement === '' ? line : `\n${line}`;
      if (!statement.endsWith(';')) continue;
      table = copiedTable(statement);
      if (table === undefined && !/^(?:begin|commit|set .*);$/.test(statement)) yield { statement };
      statement = '';
    }
    if (table !== undefined || statement !== '') throw new Error(`${this.path} ends in the middle.`);
  }
}

function copiedTable(statement: string): string | undefined {
  return /^copy "((?:[^"]|"")+)" \(.*\) from stdin;$/.exec(statement)?.[1]?.replaceAll('""', '"');
}

async function headOf(file: FileHandle, path: string): Promise<ScriptHead> {
  for await (const line of textsOf(file)) {
    const [, version, json] = line.startsWith(firstLine)
      ? (/^(\d+) (\{.*\})$/.exec(line.slice(firstLine.length)) ?? [])
      : [];
    if (!json) break;
    if (Number(version) !== format)
      throw new Error(`${path} is in form ${version}, of another release; this one reads ${format}.`);
    return parsed(json, path);
  }
  throw new Error(`${path} is not a backup of an animal store.`);
}

/** What the last line says, when it is right about all before it. */
async function endOf(file: FileHandle, path: string): Promise<ScriptEnd> {
  const { size } = await file.stat();
  const tail = Buffer.alloc(Math.min(size, longestEnd));
  await file.read(tail, 0, tail.length, size - tail.length);
  const text = tail.toString();
  const start = text.lastIndexOf(`\n${lastLine}`) + 1;
  if (start === 0 || !text.endsWith('}\n'))
    throw new Error(`${path} is not whole: it has been cut. Nothing was restored.`);
  const end: ScriptEnd = parsed(text.slice(start + lastLine.length), path);
  const before = size - Buffer.byteLength(text.slice(start));
  const hash = createHash('sha256');
  for await (const chunk of chunksOf(file, before)) hash.update(chunk);
  if (hash.digest('hex') !== end.sha256)
    throw new Error(`${path} has been changed: its checksum is wrong. Nothing was restored.`);
  return end;
}

function parsed<T>(json: string, path: string): T {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw new Error(`${path} has been changed: a comment of it cannot be read. Nothing was restored.`, { cause });
  }
}

/** Texts of lines, however long. */
async function* textsOf(file: FileHandle): AsyncGenerator<string> {
  for await (const line of linesOf(chunksOf(file))) yield `${line}`;
}
