import { execFileSync } from 'node:child_process';
import {
  globSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { newFolder } from '../../support/folder.ts';
import { afterAll, expect, test } from '../../support/jest.ts';
import { killAll, runCommand } from '../../support/process.ts';

afterAll(killAll);

/**
 * The examples of a README: programs, each with its files and what it prints.
 */
function examplesOf(readme: string) {
  const blocks = [...readme.matchAll(/^```(ts)?\n([\s\S]*?)^```$/gm)].map(
    ([, language, text = '']) => ({
      language,
      text,
    }),
  );
  const examples: Array<{ files: Record<string, string>; printed: string }> =
    [];
  let files: Record<string, string> = {};
  for (const { language, text } of blocks) {
    if (language)
      files[/^\/\/ (\S+\.ts)\n/.exec(text)?.[1] ?? 'example.ts'] = text;
    else {
      examples.push({ files, printed: text });
      files = {};
    }
  }
  return examples;
}

test.each(globSync('packages/*/package.json').map((path) => [dirname(path)]))(
  '%s, packed and unpacked into an empty folder beside the packages that it declares, runs the examples of its README',
  async (folder) => {
    const { name, ...manifest } = JSON.parse(
      readFileSync(`${folder}/package.json`, 'utf8'),
    );
    const empty = await newFolder();
    const own = join(empty, 'node_modules', name);
    mkdirSync(own, { recursive: true });
    const packed = execFileSync(
      'npm',
      ['pack', '--silent', '-w', folder, '--pack-destination', empty],
      {
        encoding: 'utf8',
      },
    );
    execFileSync('tar', [
      '-xzf',
      join(empty, packed.trim()),
      '-C',
      own,
      '--strip-components=1',
    ]);
    for (const one of Object.keys({
      ...manifest.dependencies,
      ...manifest.peerDependencies,
      ...manifest.devDependencies,
    })) {
      const link = join(empty, 'node_modules', one);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(resolve('node_modules', one), link);
    }
    writeFileSync(join(empty, 'package.json'), '{ "type": "module" }');
    const examples = examplesOf(readFileSync(`${folder}/README.md`, 'utf8'));
    expect(examples).not.toEqual([]);
    for (const { files, printed } of examples) {
      for (const [file, text] of Object.entries(files))
        writeFileSync(join(empty, file), text);
      const [program = ''] = Object.keys(files);
      const command = [
        'sh',
        '-c',
        'cd "$1" && exec "$0" "$2"',
        process.execPath,
        empty,
        program,
      ];
      expect(await runCommand(command, {}).ended).toMatchObject({
        code: 0,
        stdout: printed,
      });
    }
  },
);
