import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Tally } from './rows.ts';

/**
 * A backup is a script for psql: SQL, with the rows after each COPY. Its comments say what restoring it needs to know,
 * the last line that it is whole:
 *
 *   -- animal-store backup 1 {"migrations":["2026_..."]}
 *   begin;
 *   create table "pet" (...);
 *   copy "pet" ("id", "name") from stdin;
 *   1<tab>Rex
 *   \.
 *   alter table "pet" add constraint ...;
 *   commit;
 *   -- complete {"sha256":"...","tables":[{"table":"pet","rows":1,"sha256":"..."}]}
 */
export const firstLine = '-- animal-store backup ';
/** Of what this release writes and reads. */
export const format = 1;
export const lastLine = '-- complete ';

export interface ScriptHead {
  /** Applied to the database that was backed up. */
  migrations: string[];
}

/** What the last line says. */
export interface ScriptEnd {
  /** Of all that is before the last line. */
  sha256: string;
  tables: Tally[];
}

/** Writes such a script, and sums up what is written. */
export class ScriptWriter {
  readonly #hash = createHash('sha256');
  #bytes = 0;

  constructor(private readonly file: FileHandle) {}

  get bytes(): number {
    return this.#bytes;
  }

  async begin(head: ScriptHead): Promise<void> {
    await this.text(`${firstLine}${format} ${JSON.stringify(head)}\n`);
    await this.text(
      "set client_encoding = 'UTF8';\nset standard_conforming_strings = on;\nset client_min_messages = warning;\n",
    );
    await this.statements(['begin']);
  }

  /** Each on a line of its own. */
  async statements(statements: string[]): Promise<void> {
    for (const statement of statements) {
      // Where one ends is known by the line's end.
      if (/;\s*\n/.test(statement)) throw new Error(`A definition cannot be written to a script: ${statement}`);
      await this.text(`${statement};\n`);
    }
  }

  async text(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    this.#hash.update(bytes);
    this.#bytes += bytes.length;
    for (let at = 0; at < bytes.length; ) at += (await this.file.write(bytes, at)).bytesWritten;
  }

  /** After this, the script is whole. */
  async complete(tables: Tally[]): Promise<ScriptEnd> {
    await this.statements(['commit']);
    const end: ScriptEnd = { sha256: this.#hash.copy().digest('hex'), tables };
    await this.text(`${lastLine}${JSON.stringify(end)}\n`);
    return end;
  }
}
