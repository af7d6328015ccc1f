import type { Module } from '@animal-store/engine';
import { ordersModule } from './orders/orders.module.ts';
import { petsModule } from './pets/pets.module.ts';

/**
 * The domains of the service. A new domain is a folder beside `pets/` and a
 * line here (`docs/add-a-module.md`).
 */
export const modules: Module[] = [petsModule, ordersModule];
