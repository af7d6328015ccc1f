import { expect } from '../../support/jest.ts';
import { cli, type Env } from '../../support/process.ts';

/** The exit code of `doctor --json`, and its findings by check. */
export async function doctor(env: Env) {
  const { code, stdout, stderr } = await cli(['doctor', '--json'], env);
  expect({ stderr, isOneLine: /^[^\n]+\n$/.test(stdout) }).toEqual({
    stderr: '',
    isOneLine: true,
  });
  const { failures, warnings, findings } = JSON.parse(stdout);
  const entries = findings.map(({ check, ...finding }: { check: string }) => [
    check,
    finding,
  ]);
  return {
    code,
    stdout,
    failures,
    warnings,
    checks: Object.fromEntries(entries) as Record<string, unknown>,
  };
}
export const ok = (found: unknown) => ({ state: 'ok', found });
