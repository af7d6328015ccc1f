import type { Service } from '@animal-store/engine';
import { embeddedStore } from '@animal-store/engine/features/embedded-store';

export const service: Service = {
  name: 'own-service',
  about: { title: 'Own service', description: 'It serves books.' },
  command: 'node src/cli.ts',
  url: import.meta.url,
  modules: async () => [(await import('./books.ts')).booksModule],
  features: [embeddedStore],
};
