import type { Service } from '@animal-store/engine';
import { features } from './features.ts';

export const service: Service = {
  name: 'animal-store',
  about: {
    title: 'Animal Store',
    description: 'The catalogue of animals offered by a store.',
  },
  command: 'npm run store --',
  items: 'animals',
  guides: 'dist/guide',
  url: import.meta.url,
  modules: async () => (await import('./modules.ts')).modules,
  features,
};
