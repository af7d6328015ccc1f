import 'reflect-metadata';
import type { Module } from '#engine/api/module.js';
import { ordersModule } from '../../../src/orders/orders.module.ts';
import { petsModule } from '../../../src/pets/pets.module.ts';
import { mistakesModule, needyModule } from './mistakes.module.ts';

export const modules: Module[] = [
  petsModule,
  mistakesModule,
  needyModule,
  ordersModule,
];
