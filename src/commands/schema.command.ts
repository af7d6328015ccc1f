import { Command } from 'commander';

export function schemaCommand(): Command {
  return new Command('schema')
    .description('write the served contracts (OpenAPI, SDL) to schema/, and docs/configuration.md')
    .option('--check', 'only compare them with the files')
    .action(async ({ check = false }: { check?: boolean }) => {
      const [{ emitContracts }, { modules }] = await Promise.all([
        import('./contracts.ts'),
        import('../modules/modules.ts'),
      ]);
      await emitContracts(modules, 'schema', check);
    });
}
