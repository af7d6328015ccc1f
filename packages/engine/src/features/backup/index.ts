import { feature } from '../../feature.ts';

/** Copies the embedded store to a file, and a file into a store. */
export const backup = feature({
  name: 'backup',
  needs: ['embedded-store'],
  async commands(program, stores) {
    const { backupCommands } = await import('./commands.ts');
    backupCommands(program, stores);
  },
});
