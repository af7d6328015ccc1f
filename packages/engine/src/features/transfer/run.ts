import { collectionsOf, openModules } from '../../api/module.ts';
import {
  interruption,
  Progress,
  printable,
  show,
} from '../../commands/program.ts';
import type { Stores } from '../../feature.ts';
import { type ExportFlags, exportItems } from './export.ts';
import { type ImportFlags, importFile } from './import.ts';
import { type SeedFlags, seed } from './seed.ts';

/** Each with the state after an interruption. */
const transfers = {
  seed: { run: seed, interrupted: 'the items added so far stay' },
  export: {
    run: exportItems,
    interrupted:
      'no file was written; --after the last id continues standard output',
  },
  import: {
    run: importFile,
    interrupted:
      'the lines added so far stay; the same command continues, unless with --again',
  },
};

export type TransferName = keyof typeof transfers;
export type TransferFlags = SeedFlags &
  ExportFlags &
  ImportFlags & { json?: boolean };

/** Runs a transfer, shows its progress and reports rejected lines. */
export async function runTransfer(
  name: TransferName,
  collectionName: string | undefined,
  flags: TransferFlags,
  stores: Stores,
) {
  const { run, interrupted } = transfers[name];
  const signal = interruption();
  const note = (text: string) => process.stderr.write(`${text}\n`);
  const progress = new Progress(process.stderr);
  try {
    await stores.withDatabase(async (database, { config, modules }) => {
      const { values, http } = config;
      const began = performance.now();
      const { result, items, text, failure } = await run(
        {
          collection: collectionOf(
            openModules(modules, database, values),
            collectionName,
          ),
          maxLength: http.bodyLimit,
          signal,
          progress: (items) => progress.show('items', items),
          refused(line, reason) {
            progress.clear();
            note(`line ${line}: ${printable(reason)}`);
          },
        },
        flags,
      );
      const ms = Math.round(performance.now() - began);
      const perSecond = Math.round(items / (Math.max(1, ms) / 1000));
      // Standard output may be the export itself.
      const isTaken = name === 'export' && !flags.output;
      show(
        { ...result, ms, perSecond },
        flags,
        `${text} in ${(ms / 1000).toFixed(1)} s: ${perSecond}/s`,
        isTaken ? process.stderr : process.stdout,
      );
      if (failure) throw failure;
    });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    progress.clear();
    if (signal.aborted) note(`interrupted: ${interrupted}`);
  }
}

/** @param name the first one when undefined */
function collectionOf(
  opened: ReturnType<typeof openModules>,
  name: string | undefined,
) {
  const collections = collectionsOf(opened);
  const names = collections.map((one) => one.name);
  const collection = collections[name ? names.indexOf(name) : 0];
  if (collection) return collection;
  throw new Error(
    `There is no collection ${name}; the collections are: ${names.join(', ')}.`,
  );
}
