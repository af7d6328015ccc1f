import { text } from '../../config/variables.ts';
import { feature } from '../../feature.ts';

/** PostgreSQL in this process, with its data in a folder. */
export const embeddedStore = feature({
  name: 'embedded-store',
  variables: {
    DATA_DIR: text('.data', 'Folder of the embedded store (operate.md).'),
  },
  async commands(program) {
    const { startFlag } = await import('../../commands/program.ts');
    startFlag(program, '--data-dir <folder>', 'DATA_DIR');
  },
  checks({ config, values: { DATA_DIR: folder } }) {
    if (config.database.url) return [];
    const remedy = 'free space, or choose another DATA_DIR';
    const run = async () => (await import('./store.ts')).spaceIn(folder);
    return [{ name: 'disk', remedy, run }];
  },
  async store({ values: { DATA_DIR: folder } }) {
    const { storeIn } = await import('./store.ts');
    return storeIn(folder);
  },
});
