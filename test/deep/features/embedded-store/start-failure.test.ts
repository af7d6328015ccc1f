import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from '../../../support/folder.ts';
import { expect, test } from '../../../support/jest.ts';
import { reasons } from '../../support/start-errors.ts';

test('a data folder that is not writable, or contains no store of the service, is named in one line', async () => {
  const folder = await newFolder();
  writeFileSync(join(folder, 'lock'), 'not a lock');
  const DATA_DIR = join(folder, 'lock', 'data');
  const unwritable = `^animal-store: The data folder ${DATA_DIR} cannot be written: .*\n$`;
  for (const reason of await reasons({ DATA_DIR }))
    expect(reason).toMatch(new RegExp(unwritable));
  for (const reason of await reasons({ DATA_DIR: folder })) {
    expect(reason).toMatch(
      /^animal-store: The embedded store could not be opened: .*\n$/,
    );
  }
  rmSync(folder, { recursive: true });
});
