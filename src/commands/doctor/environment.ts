import { type Finding, failure, look, ok, type Result, warning } from './finding.ts';

type Env = Record<string, string | undefined>;

export interface EnvironmentOptions {
  env: Env;
  /** The names of all variables of the configuration. */
  names: string[];
  /** @throws Error that lists every mistake, a line each */
  load(): unknown;
}

/** Whether the configuration can be used, and what in the environment was perhaps meant to be a part of it. */
export async function lookAtEnvironment({ env, names, load }: EnvironmentOptions): Promise<Finding[]> {
  return [
    await look('configuration', () => configuration(env, names, load), '.env.example lists every variable'),
    ...strangers(env, names),
  ];
}

function configuration(env: Env, names: string[], load: () => unknown): Result {
  load();
  const given = names.filter((name) => env[name]);
  return ok(
    given.length > 0 ? `set and usable: ${given.join(', ')}` : 'nothing is set: every variable has its default',
  );
}

/** A variable that nobody reads is a setting that somebody believes in. */
function strangers(env: Env, names: string[]): Finding[] {
  const known = new Set(names);
  return Object.keys(env)
    .filter((name) => env[name] && !known.has(name))
    .flatMap((name) => {
      const meant = names.find((one) => isLike(name, one));
      const found = `${name} is no variable of the service: ${meant} was meant, perhaps`;
      return meant ? { check: 'configuration', ...warning(found, `rename it to ${meant}, or unset it`) } : [];
    });
}

/** A typing mistake or two; or a name that begins with the same two words of three. */
function isLike(name: string, known: string): boolean {
  const words = known.split('_');
  if (words.length > 2 && name.startsWith(`${words[0]}_${words[1]}_`)) return true;
  return distance(name.toUpperCase(), known) <= (known.length < 8 ? 1 : 2);
}

/** Letters that are missing, too many, wrong or in each other's place (optimal string alignment). */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Number.POSITIVE_INFINITY;
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const wrong = a[i - 1] === b[j - 1] ? 0 : 1;
      const at = (up: number, left: number) => rows[i - up]?.[j - left] ?? Number.POSITIVE_INFINITY;
      row[j] = Math.min(at(1, 0) + 1, (row[j - 1] ?? 0) + 1, at(1, 1) + wrong);
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j] ?? 0, at(2, 2) + 1);
    }
    rows.push(row);
  }
  return rows[a.length]?.[b.length] ?? 0;
}

/** What a file that the configuration names must be. @param read throws Error that says what is wrong with it */
export const lookAtDocuments = (read: () => { size: number }): Promise<Finding> =>
  look(
    'trusted documents',
    () => {
      const { size } = read();
      return size > 0 ? ok(`${size} names and hashes`) : failure('none', 'nothing could be asked by GraphQL');
    },
    'TRUSTED_DOCUMENTS names a JSON file of hash -> document',
  );
