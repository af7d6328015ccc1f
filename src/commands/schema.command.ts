import { Command } from 'commander';
import { withExamples } from './terminal/program.ts';

/** `schema`, for developers: the contracts in the repository. */
export function schemaCommand(emit: (check: boolean) => Promise<void>): Command {
  const command = new Command('schema')
    .description('write the contracts as served (OpenAPI, SDL) to schema/')
    .option('--check', 'only compare with what is there')
    .action(({ check = false }: { check?: boolean }) => emit(check));
  return withExamples(command, 'animal-store schema --check');
}
