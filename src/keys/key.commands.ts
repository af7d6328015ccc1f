import { Command, InvalidArgumentError } from 'commander';
import type { ApiKey } from './api-key.entity.ts';
import type { ApiKeyService } from './api-key.service.ts';

/** Runs `work` with the keys of the configured database, open and migrated. */
export type WithKeys = (work: (keys: ApiKeyService) => Promise<void>) => Promise<void>;

/** `keys issue`, `keys list` and `keys revoke`: parse, call the service, print. */
export function keyCommands(withKeys: WithKeys, print: (line: string) => void): Command {
  const keys = new Command('keys').description('the API keys');

  keys
    .command('issue')
    .description('make a key; its secret is shown only now')
    .requiredOption('--name <name>', 'what the key is for')
    .option('--json', 'print one JSON object')
    .action(({ name, json }: { name: string; json?: boolean }) =>
      withKeys(async (service) => {
        const issued = await service.issue(name);
        print(json ? JSON.stringify(issued) : `key ${issued.id} (${issued.name}): ${issued.key}`);
      }),
    );

  keys
    .command('list')
    .description('all keys, without their secrets')
    .option('--json', 'print a JSON array')
    .action(({ json }: { json?: boolean }) =>
      withKeys(async (service) => {
        const rows = (await service.list()).map(toRow);
        print(json ? JSON.stringify(rows) : table(rows));
      }),
    );

  keys
    .command('revoke')
    .description('refuse a key from now on')
    .argument('<id>', 'as in the list', wholeNumber)
    .option('--json', 'print one JSON object')
    .action((id: number, { json }: { json?: boolean }) =>
      withKeys(async (service) => {
        const key = toRow(await service.revoke(id));
        print(json ? JSON.stringify(key) : `key ${key.id} (${key.name}) is revoked`);
      }),
    );

  return keys;
}

function toRow({ id, name, scope, hint, createdAt, expiresAt, lastUsedAt, revokedAt }: ApiKey) {
  return { id, name, scope, hint: `${hint}...`, createdAt, expiresAt, lastUsedAt, revokedAt };
}

function table(rows: Array<Record<string, unknown>>): string {
  const header = Object.keys(rows[0] ?? { 'no keys': '' });
  const lines = [header, ...rows.map((row) => Object.values(row).map(cell))];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  return lines
    .map((line) =>
      line
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function cell(value: unknown): string {
  if (value instanceof Date) return value.toISOString().slice(0, 19).replace('T', ' ');
  return value === null ? '-' : String(value);
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}
