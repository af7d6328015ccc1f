import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** A value out of a file, and the type that it must have. */
export interface Claim {
  value: unknown;
  /** An expression of TypeScript that `imports` make known. */
  type: string;
}

/**
 * Enumerations as the texts that JSON has for them, and dates, too. Without it no value out of a file is of a type that
 * has an enumeration.
 */
const plain = `type Plain<T> = T extends string ? \`\${T}\` : T extends (infer E)[] ? Plain<E>[]
  : T extends number | boolean | null | undefined ? T : { [K in keyof T]: Plain<T[K]> };`;

let files = 0;

/**
 * Whether values are of types that packages declare. As literals in a program, so that the compiler also finds members
 * that the type does not have, which no validator of JSON does unless the schema forbids them.
 *
 * @returns what the compiler says; empty when all is well
 */
export async function mistyped(imports: string, claims: Claim[]): Promise<string> {
  const file = join(import.meta.dirname, `typed-${process.pid}-${++files}.ts`);
  const lines = claims.map(
    ({ value, type }, at) => `export const value${at} = ${JSON.stringify(value)} satisfies ${type};`,
  );
  writeFileSync(file, [imports, plain, ...lines].join('\n'));
  const options = '--ignoreConfig --noEmit --strict --module nodenext --skipLibCheck --types node'.split(' ');
  try {
    await promisify(execFile)(resolve('node_modules/.bin/tsc'), [...options, file]);
    return '';
  } catch (error) {
    return (error as { stdout: string }).stdout;
  } finally {
    rmSync(file);
  }
}
