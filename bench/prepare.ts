import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Refusal } from './options.ts';
import { ourProgram, peersFolder } from './programs.ts';

/** Compiles the peer that is TypeScript; `npm run bench` has installed them. @throws Refusal */
export function prepare(): void {
  if (process.platform !== 'linux') throw new Refusal('The benchmark reads /proc and runs on Linux only.');
  requireBuild();
  const compiler = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
  execFileSync(process.execPath, [compiler, '-p', peersFolder], { stdio: 'inherit' });
}

/** @throws Refusal unless the service has been built. */
export function requireBuild(): void {
  const main = join(ourProgram.cwd, ourProgram.script);
  if (!existsSync(main)) throw new Refusal('The service has not been built: npm run build.');
}
