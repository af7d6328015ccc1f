import { Command } from 'commander';
import { exitCodes, json, show } from './program.ts';

export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check the configuration, the database and the disk, and say what to do; the service may run')
    .option(...json)
    .action(async (flags: { json?: boolean }) => {
      const { examine } = await import('./doctor.ts');
      const findings = await examine();
      const lines = findings.map(({ check, state, found, remedy }) => {
        const line = `${state.padEnd(8)} ${check.padEnd(14)} ${found.replaceAll('\n', '\n  ')}`;
        return remedy ? `${line}\n         -> ${remedy}` : line;
      });
      const count = (wanted: string) => findings.filter(({ state }) => state === wanted).length;
      const [failures, warnings] = [count('failure'), count('warning')];
      show(
        { failures, warnings, findings },
        flags,
        `${lines.join('\n')}\nfailures: ${failures}, warnings: ${warnings}`,
      );
      if (failures > 0) process.exitCode = exitCodes.failed;
    });
}
