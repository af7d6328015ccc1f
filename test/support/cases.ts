/**
 * How many cases a generator makes: all of them in `npm run test:deep`, a tenth in `npm test`.
 *
 * @param variable of the environment that says otherwise
 */
export function cases(all: number, variable?: string): number {
  const given = variable && process.env[variable];
  return given ? Number(given) : Math.ceil(all * (process.env.TEST_DEEP ? 1 : 0.1));
}
