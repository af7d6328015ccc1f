import { hash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { addAbortSignal, Readable } from 'node:stream';
import { exact } from '@animal-store/exact-json';
import { type TObject, Type } from 'typebox';
import type { Collection } from '../../api/resources/collection.ts';
import { Call } from '../../call.ts';
import { exitCodes } from '../../commands/program.ts';
import { isDataError, reasonOf } from '../../database/postgres-errors.ts';
import { ruleBroken } from '../../database/transaction.ts';
import { StoreError } from '../../errors.ts';
import { longestName } from '../../records/rows/ownership.ts';
import { textSchema } from '../../validation/schemas.ts';
import { validator } from '../../validation/validator.ts';
import {
  csvColumnsOf,
  type FormatName,
  formatOf,
  formats,
  type Line,
} from './formats.ts';
import type { Report, Transfer } from './types.ts';

export interface ImportFlags {
  input?: string;
  format?: FormatName;
  again?: boolean;
  dryRun?: boolean;
}

/** Adds the items of a file, or of standard input. */
export async function importFile(transfer: Transfer, flags: ImportFlags) {
  const { input, format = formatOf(input), again, dryRun } = flags;
  if (!input && process.stdin.isTTY)
    throw new Error('There is no input: give --input FILE, or a pipe.');
  const { collection, maxLength, signal } = transfer;
  const file = input && (await open(input));
  const stream = file ? file.createReadStream() : process.stdin;
  addAbortSignal(signal, stream);
  const { read, hasOnlyTexts: isLenient } = formats[format];
  const columns = csvColumnsOf(collection.item, withOwner(collection));
  const lines = read(stream, columns, maxLength);
  const options: ImportOptions = { isLenient, dryRun };
  if (!again) options.source = input ? resolve(input) : '-';
  return importLines(lines, transfer, options);
}

interface ImportOptions {
  /** True when numbers may be texts of digits. */
  isLenient?: boolean;
  dryRun?: boolean;
  /** Each line of a source is added once; without one, at every import. */
  source?: string;
}

/** Maximum number of concurrent creations. The service batches them. */
const concurrency = 1024;

/**
 * Adds lines in order through the module's service. Added items stay, however
 * this ends.
 */
export async function importLines(
  lines: AsyncIterable<Line>,
  { collection, progress, refused, signal }: Transfer,
  { isLenient = false, dryRun = false, source }: ImportOptions = {},
): Promise<Report> {
  const { name, service } = collection;
  const check = validator(withOwner(collection), { isLenient });
  const operation = `import ${name}`;
  const result = { added: 0, same: 0, refused: 0 };
  let done = 0;
  let failure: unknown;
  const create = async ({ line, ...one }: Line) => {
    if (failure) return;
    try {
      if ('fault' in one) throw new StoreError('BAD_USER_INPUT', one.fault);
      const item = check(one.input);
      const call = Call.ofOperator();
      if (source) {
        const hash = lineHash([source, line, item]);
        call.claim = { keyId: 0, operation, hash };
      }
      if (!dryRun) await service.create(item as never, call);
      if (call.isReplay) result.same += 1;
      else result.added += 1;
    } catch (error) {
      const reason = reasonToRefuse(error);
      if (!reason) failure ??= error;
      else {
        result.refused += 1;
        refused(line, reason);
        // Lines refer to others by their numbers.
        if (service.isTree && !dryRun) failure = endedAt(line);
      }
    }
    done += 1;
    progress(done);
  };

  async function* untilFailure() {
    for await (const one of lines) {
      if (signal.aborted || failure) return;
      yield one;
    }
  }
  await Readable.from(untilFailure())
    .forEach(create, { concurrency: service.isTree ? 1 : concurrency })
    .catch((error) => {
      failure ??= error;
    });
  const { added, same } = result;
  const counts = [dryRun ? `${added} valid` : `${added} added`];
  if (same > 0) counts.push(`${same} added before`);
  if (result.refused > 0) {
    counts.push(`${result.refused} refused`);
    // After an interruption the exit code is that of the signal.
    process.exitCode ??= exitCodes.refused;
  }
  const text = counts.join(', ');
  return { result, items: added + same, text, failure };
}

const endedAt = (line: number) =>
  new Error(
    `The lines behind line ${line} are not added: they would refer to other rows.`,
  );

const lineHash = (line: unknown[]) =>
  hash('sha256', JSON.stringify(line, exact), 'buffer');

/**
 * @returns why a line is refused; undefined for another error, which ends the
 *   import
 */
function reasonToRefuse(error: unknown) {
  const { message, code, cause } = error as StoreError;
  const isOfRule = message === ruleBroken;
  if (isOfRule || isDataError(error)) {
    // An operator may know the rule's name, which clients do not learn. That of
    // a trigger that drops the row is not known.
    const fault = (isOfRule && cause) || error;
    return `the database refuses it: ${reasonOf(fault)}`;
  }
  const isRefused = code === 'BAD_USER_INPUT' || code === 'CONFLICT';
  return isRefused ? message : undefined;
}

/** The input of operators, who keep the owners of items. */
function withOwner({ input, item, service }: Collection): TObject {
  const { ownerMembers = [] } = service;
  const owners = ownerMembers.filter(
    (member) => item.properties[member] && !input.properties[member],
  );
  if (owners.length === 0) return input;
  const member = textSchema({
    minLength: 1,
    maxLength: longestName,
    pattern: '^key:\\d+$|^(?!key:)',
    description: 'To whom it belongs.',
  });
  const own = owners.map((name) => [name, Type.Optional(member)]);
  return Type.Object({ ...input.properties, ...Object.fromEntries(own) });
}
