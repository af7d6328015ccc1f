import { StoreError } from '../errors.ts';

/** True for errors about the data of a statement (SQLSTATE classes 22 and 23): its neighbours are not to blame. */
export function isDataError(error: unknown): boolean {
  const code = (error as { code?: unknown })?.code;
  return typeof code === 'string' && /^2[23]\w{3}$/.test(code);
}

// Classes 08 connection, 53 resources, 57 operator intervention (shutdown, time-out), 58 system, 25006 read-only standby.
const passingState = /^(?:08|53|57|58)\w{3}$|^25006$/;
const passingSystemCall = /^E(?:CONN\w+|NOENT|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN|NOTFOUND)$/;
const passingMessage = /(?:^| - )Connection terminated|timeout exceeded when trying to connect/;

/** The StoreError for a database that cannot be used now; undefined when an error means something else. */
export function unavailable(error: unknown): StoreError | undefined {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  const passing = passingState.test(code) || passingSystemCall.test(code) || passingMessage.test(message);
  if (!passing) return undefined;
  return new StoreError('SERVICE_UNAVAILABLE', 'The database cannot be reached; try again shortly.', {
    cause: error,
    headers: { 'retry-after': '1' },
  });
}
