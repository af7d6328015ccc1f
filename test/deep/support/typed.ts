import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** A value from a file, and the type that it must have. */
export interface Claim {
  value: unknown;
  /** A type expression of TypeScript. `imports` declares its names. */
  type: string;
}

/**
 * Replaces enumerations, and dates, by their text in JSON. Otherwise no value
 * from a file has a type with an enumeration.
 */
const plain = `type Plain<T> = T extends string ? \`\${T}\` : T extends (infer E)[] ? Plain<E>[]
  : T extends number | boolean | null | undefined ? T : { [K in keyof T]: Plain<T[K]> };`;

let files = 0;

/**
 * Checks values against types that packages declare. The values are literals in
 * a program, so that the compiler also finds unknown members. A validator of
 * JSON finds those only where the schema forbids them.
 *
 * @returns the output of the compiler; empty when all values have their types
 */
export async function mistyped(
  imports: string,
  claims: Claim[],
): Promise<string> {
  const file = join(import.meta.dirname, `typed-${process.pid}-${++files}.ts`);
  const lines = claims.map(
    ({ value, type }, at) =>
      `export const value${at} = ${JSON.stringify(value)} satisfies ${type};`,
  );
  writeFileSync(file, [imports, plain, ...lines].join('\n'));
  const options =
    '--ignoreConfig --noEmit --strict --module nodenext --skipLibCheck --types node'.split(
      ' ',
    );
  try {
    await promisify(execFile)(resolve('node_modules/.bin/tsc'), [
      ...options,
      file,
    ]);
    return '';
  } catch (error) {
    return (error as { stdout: string }).stdout;
  } finally {
    rmSync(file);
  }
}
