import type { Service } from '@animal-store/engine';
import { embeddedStore } from '@animal-store/engine/features/embedded-store';

export const service: Service = {
  name: 'own-service',
  description: 'A library.',
  url: import.meta.url,
  modules: async () => [(await import('./books.ts')).booksModule],
  features: [embeddedStore],
};
