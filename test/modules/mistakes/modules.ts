import 'reflect-metadata';
import type { Module } from '../../../src/api/module.ts';
import { ordersModule } from '../../../src/modules/orders/orders.module.ts';
import { petsModule } from '../../../src/modules/pets/pets.module.ts';
import { mistakesModule, needyModule } from './mistakes.module.ts';

export const modules: Module[] = [
  petsModule,
  mistakesModule,
  needyModule,
  ordersModule,
];
