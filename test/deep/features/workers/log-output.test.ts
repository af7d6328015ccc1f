import { databaseForEach } from '../../../support/fixtures.ts';
import { test } from '../../../support/jest.ts';
import { writesWholeLines } from '../../support/log-output.ts';
import { startWorkers } from './start.ts';

const database = databaseForEach();

test('several workers whose standard output is a pipe writes every line whole; when its reader stalls, whole lines that do not fit are dropped and counted', () =>
  writesWholeLines((stdout) => startWorkers(database.env, 2, stdout), 4));
