import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/jest.ts';

/** Of a module that is not listed, and of a resolver that is not handed over, the service knows nothing. */

const folder = 'src/modules';
const modules = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
const textOf = (...path: string[]) => readFileSync(join(folder, ...path), 'utf8');

test('src/modules/modules.ts lists each module of src/modules', () => {
  expect(modules.length).toBeGreaterThan(1);
  const list = textOf('modules.ts');
  for (const { name } of modules) {
    expect(list).toContain(`'./${name}/${name}.module.ts'`);
    const [, exported] = /export const (\w+): Module/.exec(textOf(name, `${name}.module.ts`)) ?? [];
    expect(/modules: Module\[\] = \[([^\]]*)\]/.exec(list)?.[1]?.match(/\w+/g)).toContain(exported);
  }
});

test('each module hands its resolvers over', () => {
  for (const { name } of modules) {
    const files = globSync('**/*.ts', { cwd: join(folder, name) }).map((file) => textOf(name, file));
    const resolvers = files.flatMap((text) => [...text.matchAll(/^@Resolver\([\s\S]*?\bclass (\w+)/gm)]);
    for (const [, resolver] of resolvers) expect(textOf(name, `${name}.module.ts`)).toContain(`new ${resolver}(`);
  }
});
