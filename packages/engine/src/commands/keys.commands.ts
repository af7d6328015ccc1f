import { type Command, InvalidArgumentError, Option } from 'commander';
import type { DeprecatedCall } from '../access/deprecations/usage.ts';
import type { ApiKey, KeyEvent } from '../access/keys/api-key.entity.ts';
import type {
  ApiKeyService,
  IssuedKey,
} from '../access/keys/api-key.service.ts';
import type { Database } from '../database/database.ts';
import type { Service } from '../feature.ts';
import { assertScopes, scopeNameOf } from '../scopes.ts';
import {
  duration,
  integerBetween,
  json,
  momentFrom,
  show,
  table,
  withExamples,
} from './program.ts';

interface KeyFlags {
  name: string;
  scope: string[];
  expires?: Date;
  overlap: number;
  json?: boolean;
}

const idArgument = [
  '<id>',
  'as in the list',
  integerBetween(0, 2 ** 31 - 1),
] as const;

export function keyCommands(program: Command, service: Service) {
  const group = program
    .command('keys')
    .description(
      'issue, list, rotate and revoke API keys; the service may run',
    );

  const issue = group
    .command('issue')
    .description('make a key; its secret is shown only now')
    .requiredOption('--name <name>', 'what the key is for')
    .addOption(
      new Option(
        '--scope <scopes>',
        'what it may do: read, write, all; of a module MODULE:read; several by commas',
      )
        .argParser(scopesFrom)
        .default(['write'], 'write'),
    )
    .option(
      '--expires <when>',
      'after a time (90d, 12h, 30m) or at a date (2027-01-31)',
      momentFrom,
    )
    .option(...json)
    .action(async ({ name, scope: scopes, expires, ...flags }: KeyFlags) => {
      await assertModules(service, scopes, issue);
      const scope = scopes.join(' ');
      const issued = await withKeys(service, (keys) =>
        keys.issue({ name, scope, expiresAt: expires }),
      );
      show(issued, flags, withSecret(issued));
    });
  withExamples(
    issue,
    `${service.name} keys issue --name shop-frontend --scope read --expires 90d`,
    `${service.name} keys issue --name import --json`,
  );

  group
    .command('rotate')
    .description('give a key a new secret, shown only now')
    .argument(...idArgument)
    .addOption(
      new Option(
        '--overlap <time>',
        'how long the old secret stays valid (24h, 30m, 0)',
      )
        .argParser(duration)
        .default(duration('24h'), '24h'),
    )
    .option(...json)
    .action(async (id: number, { overlap, ...flags }: KeyFlags) => {
      const rotated = await withKeys(service, (keys) =>
        keys.rotate(id, overlap),
      );
      const { previousExpiresAt: until } = rotated;
      const old = until
        ? `valid until ${until.toISOString()}`
        : 'no longer valid';
      show(rotated, flags, `${withSecret(rotated)}\nthe old secret is ${old}`);
    });

  group
    .command('revoke')
    .description('refuse a key from now on')
    .argument(...idArgument)
    .option(...json)
    .action(async (id: number, flags: KeyFlags) => {
      const row = rowOfKey(await withKeys(service, (keys) => keys.revoke(id)));
      show(row, flags, `key ${row.id} (${row.name}) is revoked`);
    });

  const listing = (
    name: string,
    description: string,
    whenEmpty: string,
    list: (keys: ApiKeyService, database: Database) => Promise<ListedRow[]>,
  ) =>
    group
      .command(name)
      .description(description)
      .option(...json)
      .action(async (flags: KeyFlags) => {
        const rows = await withKeys(service, list);
        show(rows, flags, table(rows, whenEmpty));
      });
  listing(
    'list',
    'all keys, without their secrets',
    'There are no keys.',
    async (keys) => (await keys.list()).map(rowOfKey),
  );
  listing(
    'history',
    'who has issued, rotated and revoked keys, and when',
    'No key has been changed.',
    async (keys) => (await keys.history()).map(rowOfEvent),
  );
  listing(
    'deprecations',
    'which keys still call deprecated operations',
    'No key has called a deprecated operation.',
    listDeprecatedCalls,
  );
}

type ListedRow = Record<string, unknown>;

async function listDeprecatedCalls(keys: ApiKeyService, database: Database) {
  const { DeprecatedCall } = await import('../access/deprecations/usage.ts');
  const known = await keys.list();
  const names = new Map(known.map(({ id, name }) => [id, name]));
  const em = database.orm.em.fork();
  const latest = { orderBy: { lastCallAt: 'desc' } } as const;
  const calls = await em.find(DeprecatedCall, {}, latest);
  return calls.map((one) => rowOfCalls(one, names));
}

function scopesFrom(text: string) {
  const scopes = text.split(/[ ,]/);
  try {
    assertScopes(scopes);
  } catch (error) {
    throw new InvalidArgumentError(`It ${(error as Error).message}.`);
  }
  if (scopes.every((scope) => scope.endsWith('all')))
    throw new InvalidArgumentError(
      'It permits nothing: all opens rows of others to read or write, as in read,all.',
    );
  return scopes;
}

/** @throws CommanderError for a scope of a module that does not exist */
async function assertModules(
  service: Service,
  scopes: string[],
  command: Command,
) {
  if (!scopes.some((scope) => scope.includes(':'))) return;
  const modules = await service.modules();
  const names = modules.map(({ tag }) => scopeNameOf(tag.name));
  try {
    assertScopes(scopes, names);
  } catch (error) {
    command.error(`error: --scope ${(error as Error).message}.`);
  }
}

/**
 * Loads the services only when a command runs, so that help and usage errors
 * are fast.
 */
async function withKeys<T>(
  service: Service,
  work: (keys: ApiKeyService, database: Database) => Promise<T>,
) {
  const [{ withKeyTables }, { ApiKeyService, actorOf }] = await Promise.all([
    import('./context.ts'),
    import('../access/keys/api-key.service.ts'),
  ]);
  const command = process.argv.slice(2, 4).join(' ');
  const actor = actorOf(command, process.env.SUDO_USER);
  return withKeyTables(service, (database) =>
    work(new ApiKeyService(database, actor), database),
  );
}

/** As `--scope` takes it. */
const asFlag = (scope: string) => scope.replaceAll(' ', ',');

function withSecret({ id, name, scope, key }: IssuedKey) {
  return `key ${id} (${name}, ${asFlag(scope)}): ${key}`;
}

function rowOfEvent({ id, at, change, keyId: key, hint, ...by }: KeyEvent) {
  return { id, at, change, key, hint: `${hint}...`, ...by };
}

function rowOfKey({
  id,
  name,
  scope,
  hint,
  createdAt,
  expiresAt,
  lastUsedAt,
  revokedAt,
}: ApiKey) {
  return {
    id,
    name,
    scope: asFlag(scope),
    hint: `${hint}...`,
    createdAt,
    expiresAt,
    lastUsedAt,
    revokedAt,
  };
}

function rowOfCalls(
  { keyId, operation, calls, lastCallAt, removal }: DeprecatedCall,
  names: Map<number, string>,
) {
  const daysLeft = Math.ceil((removal.getTime() - Date.now()) / 86_400_000);
  const protocol = operation.includes('.') ? 'GraphQL' : 'REST';
  const name = names.get(keyId) ?? (keyId === 0 ? 'bootstrap' : 'a subject');
  return {
    key: keyId,
    name,
    operation,
    protocol,
    calls: Number(calls),
    lastCallAt,
    removal,
    daysLeft,
  };
}
