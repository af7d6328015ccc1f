import { Command } from 'commander';
import type { DeprecatedCall } from '../access/deprecations/deprecated-call.entity.ts';
import type { DeprecationUsage } from '../access/deprecations/usage.ts';
import type { ApiKeyService } from '../access/keys/api-key.service.ts';
import { withExamples } from './terminal/program.ts';
import { table } from './terminal/table.ts';

export interface DeprecationServices {
  keys: ApiKeyService;
  usage: DeprecationUsage;
}

/** `keys deprecations`: lists who must be told before an operation is removed. */
export function deprecationsCommand(
  withServices: (work: (services: DeprecationServices) => Promise<void>) => Promise<void>,
  print: (text: string) => void,
): Command {
  const command = new Command('deprecations')
    .description('who still calls operations that will be removed')
    .option('--json', 'print JSON, and nothing else')
    .action(({ json }: { json?: boolean }) =>
      withServices(async ({ keys, usage }) => {
        const names = new Map((await keys.list()).map(({ id, name }) => [id, name]));
        const rows = (await usage.list()).map((calls) => rowOf(calls, names));
        print(json ? JSON.stringify(rows) : table(rows, 'Nobody has called a deprecated operation.'));
      }),
    );
  return withExamples(command, 'animal-store keys deprecations --json');
}

function rowOf({ keyId, operation, calls, lastCallAt, removal }: DeprecatedCall, names: Map<number, string>) {
  const daysLeft = Math.ceil((removal.getTime() - Date.now()) / 86_400_000);
  const protocol = operation.includes('.') ? 'GraphQL' : 'REST';
  const name = names.get(keyId) ?? 'bootstrap';
  return { key: keyId, name, operation, protocol, calls: Number(calls), lastCallAt, removal, daysLeft };
}
