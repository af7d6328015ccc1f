import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ourProgram, peersFolder } from './programs.ts';
import { UserError } from './user-error.ts';

/**
 * Compiles the peer that is written in TypeScript. `npm run bench` has
 * installed the peers. @throws UserError
 */
export function prepare(): void {
  if (process.platform !== 'linux')
    throw new UserError('The benchmark reads /proc and runs on Linux only.');
  requireBuild();
  const compiler = fileURLToPath(
    new URL('../node_modules/typescript/bin/tsc', import.meta.url),
  );
  execFileSync(process.execPath, [compiler, '-p', peersFolder], {
    stdio: 'inherit',
  });
}

/** @throws UserError unless the service has been built. */
export function requireBuild(): void {
  const main = join(ourProgram.cwd, ourProgram.script);
  if (!existsSync(main))
    throw new UserError('The service is not built: npm run build.');
}
