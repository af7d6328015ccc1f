import type { Service } from '@animal-store/engine';
import { features } from './features.ts';

export const service: Service = {
  name: 'animal-store',
  description: 'The animal store: run it, and administer it.',
  url: import.meta.url,
  modules: async () => (await import('./modules.ts')).modules,
  features,
};
