import type { Service } from '@animal-store/engine';
import { assistants } from '@animal-store/engine/features/assistants';
import { embeddedStore } from '@animal-store/engine/features/embedded-store';
import { tokens } from '@animal-store/engine/features/tokens';

export const service: Service = {
  name: 'practice',
  about: { title: 'Practice', description: 'Clinics for animals.' },
  command: 'node src/cli.ts',
  url: import.meta.url,
  modules: async () => [(await import('./practice.ts')).practiceModule],
  features: [assistants, embeddedStore, tokens],
};
