import type { Service } from '@animal-store/engine';
import { features } from './features.ts';

export const service: Service = {
  name: 'animal-store',
  modules: async () => (await import('./modules.ts')).modules,
  features,
};
