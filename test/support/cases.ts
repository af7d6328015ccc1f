/**
 * How many cases a generator makes: the share that GENERATED_CASES gives, a
 * tenth by default.
 *
 * @param variable an environment variable that gives the number instead
 */
export function cases(all: number, variable?: string): number {
  const given = variable && process.env[variable];
  return given
    ? Number(given)
    : Math.ceil(all * Number(process.env.GENERATED_CASES ?? 0.1));
}
