import { Command, Option } from 'commander';
import type { ApiKey, KeyEvent, KeyScope } from '../access/keys/api-key.entity.ts';
import type { ApiKeyService, IssuedKey } from '../access/keys/api-key.service.ts';
import { duration, momentFrom, wholeNumber } from './key.arguments.ts';
import { withExamples } from './terminal/program.ts';
import { table } from './terminal/table.ts';

/** Runs `work` on the configured database, open and migrated. */
export type WithKeys = (work: (keys: ApiKeyService) => Promise<void>) => Promise<void>;

interface Flags {
  name: string;
  scope: KeyScope;
  expires?: Date;
  overlap: number;
  json?: boolean;
}

const json = () => new Option('--json', 'print JSON, and nothing else');

/** The `keys` commands: parse, call the service, print. */
export function keyCommands(withKeys: WithKeys, print: (text: string) => void): Command {
  const group = new Command('keys').description('issue, list, rotate and revoke API keys, while the service runs, too');
  const show = (value: unknown, asJson: boolean | undefined, text: string) =>
    print(asJson ? JSON.stringify(value) : text);

  const issue = group
    .command('issue')
    .description('make a key; its secret is shown only now')
    .requiredOption('--name <name>', 'what the key is for')
    .addOption(new Option('--scope <scope>', 'what it may do').choices(['read', 'write']).default('write'))
    .option('--expires <when>', 'after a time (90d, 12h, 30m) or at a date (2027-01-31)', momentFrom)
    .addOption(json())
    .action(({ name, scope, expires, json }: Flags) =>
      withKeys(async (keys) => {
        const issued = await keys.issue({ name, scope, expiresAt: expires });
        show(issued, json, withSecret(issued));
      }),
    );
  withExamples(
    issue,
    'animal-store keys issue --name shop-frontend --scope read --expires 90d',
    'animal-store keys issue --name import --json',
  );

  const list = group
    .command('list')
    .description('all keys, without their secrets')
    .addOption(json())
    .action(({ json }: Flags) =>
      withKeys(async (keys) => {
        const rows = (await keys.list()).map(rowOfKey);
        show(rows, json, table(rows, 'There are no keys.'));
      }),
    );
  withExamples(list, 'animal-store keys list', 'animal-store keys list --json');

  const rotate = group
    .command('rotate')
    .description('give a key a new secret, shown only now')
    .argument('<id>', 'as in the list', wholeNumber)
    .addOption(
      new Option('--overlap <time>', 'how long the old secret stays valid (24h, 30m, 0)')
        .argParser(duration)
        .default(duration('24h'), '24h'),
    )
    .addOption(json())
    .action((id: number, { overlap, json }: Flags) =>
      withKeys(async (keys) => {
        const rotated = await keys.rotate(id, overlap);
        const { previousExpiresAt: until } = rotated;
        const old = until ? `valid until ${until.toISOString()}` : 'no longer valid';
        show(rotated, json, `${withSecret(rotated)}\nthe old secret is ${old}`);
      }),
    );
  withExamples(rotate, 'animal-store keys rotate 2 --overlap 24h');

  const revoke = group
    .command('revoke')
    .description('refuse a key from now on')
    .argument('<id>', 'as in the list', wholeNumber)
    .addOption(json())
    .action((id: number, { json }: Flags) =>
      withKeys(async (keys) => {
        const row = rowOfKey(await keys.revoke(id));
        show(row, json, `key ${row.id} (${row.name}) is revoked`);
      }),
    );
  withExamples(revoke, 'animal-store keys revoke 2');

  const history = group
    .command('history')
    .description('who has issued, rotated and revoked keys, and when')
    .addOption(json())
    .action(({ json }: Flags) =>
      withKeys(async (keys) => {
        const rows = (await keys.history()).map(rowOfEvent);
        show(rows, json, table(rows, 'Nothing has been done to any key.'));
      }),
    );
  withExamples(history, 'animal-store keys history --json');

  return group;
}

function withSecret({ id, name, scope, key }: IssuedKey): string {
  return `key ${id} (${name}, ${scope}): ${key}`;
}

function rowOfEvent({ id, at, change, keyId, hint, user, sudoUser, host, command }: KeyEvent) {
  return { id, at, change, key: keyId, hint: `${hint}...`, user, sudoUser, host, command };
}

function rowOfKey({ id, name, scope, hint, createdAt, expiresAt, lastUsedAt, revokedAt }: ApiKey) {
  return { id, name, scope, hint: `${hint}...`, createdAt, expiresAt, lastUsedAt, revokedAt };
}
