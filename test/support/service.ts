import type { Module } from '#engine/api/module.js';
import type { Feature, Service } from '#engine/feature.js';
import { service } from '../../src/service.ts';

/** The store with other modules and features. */
export const serviceOf = (
  modules: Module[],
  features: readonly Feature[] = service.features,
): Service => ({ ...service, modules: async () => modules, features });
