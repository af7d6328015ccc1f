import { expect } from '../../support/jest.ts';
import { cli, type Env, startAndFail } from '../../support/process.ts';

/**
 * The standard error of a start and of a command that fail without other
 * output.
 */
export async function reasons(env: Env): Promise<string[]> {
  const both = [await startAndFail(env), await cli(['keys', 'list'], env)];
  expect(both).toMatchObject(Array(2).fill({ code: 1, stdout: '' }));
  return both.map(({ stderr }) => stderr);
}
