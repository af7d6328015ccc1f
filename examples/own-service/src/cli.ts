#!/usr/bin/env node
import { run } from '@animal-store/engine/cli';
import { service } from './service.ts';

await run(service, () => import('./main.ts'));
