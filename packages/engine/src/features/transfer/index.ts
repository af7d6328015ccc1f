import { feature } from '../../feature.ts';

/** Seeds, exports and imports items through the service. */
export const transfer = feature({
  name: 'transfer',
  async commands(program, stores) {
    const { transferCommands } = await import('./commands.ts');
    transferCommands(program, stores);
  },
});
