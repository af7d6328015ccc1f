import { EnvError, makeValidator } from 'envalid';

/** Validators for single configuration variables. Each error message says what is wrong with the value. */

interface NumberSpec {
  default: number;
  desc: string;
}

/** What a validator takes, in words for `docs/configuration.md`. */
export interface Described {
  takes?: string;
}

function described<Validator extends (...spec: never[]) => object>(takes: string, validator: Validator): Validator {
  return ((...spec) => Object.assign(validator(...spec), { takes })) as Validator;
}

export const wholeNumber = (min: number, max: number, spec: NumberSpec) =>
  described(
    `${min} to ${max}`,
    makeValidator((text: string) => {
      const value = Number(text);
      if (!/^\d+$/.test(text) || value < min || value > max) {
        throw new EnvError(`must be a whole number between ${min} and ${max}, not "${text}"`);
      }
      return value;
    }),
  )(spec);

/** A part of a whole, from 0 to 1. */
export const share = described(
  '0 to 1',
  makeValidator((text: string) => {
    if (!/^(?:0|1|[01]?\.\d{1,9})$/.test(text) || Number(text) > 1) {
      throw new EnvError(`must be a number between 0 and 1, not "${text}"`);
    }
    return Number(text);
  }),
);

/** A number of processes, or `auto`. */
export const processes = described(
  '1 to 256, `auto`',
  makeValidator((text: string): number | 'auto' => {
    if (text === 'auto') return text;
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < 1 || value > 256) {
      throw new EnvError(`must be a whole number between 1 and 256, or auto, not "${text}"`);
    }
    return value;
  }),
);

export const milliseconds = (spec: NumberSpec) => wholeNumber(1, 86_400_000, spec);

const address = (what: string, protocol: RegExp) =>
  described(
    `${what} address`,
    makeValidator((text: string) => {
      if (!URL.canParse(text) || !protocol.test(new URL(text).protocol))
        throw new EnvError(`must be a ${what} address`);
      return text;
    }),
  );

const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];

function checkedPostgresUrl(text: string): string {
  // An unescaped @ ends the password, so the hosts begin after the last one.
  if (/^postgres(?:ql)?:\/\/(?:[^/?]*@)?[^/?@]*,[^/?@]*(?:[/?]|$)/.test(text)) {
    throw new EnvError('names several hosts; it takes one (docs/scale.md, Failover)');
  }
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // Two addresses with something else than a comma in between would be one, and a password part of a name.
  if (!url || !/^postgres(?:ql)?:$/.test(url.protocol) || /\s|:\/\/.*:\/\//.test(text)) {
    throw new EnvError('must be a postgres:// address');
  }
  const mode = url.searchParams.get('sslmode');
  if (mode && !sslModes.includes(mode)) throw new EnvError(`has an sslmode that is none of ${sslModes.join(', ')}`);
  return text;
}

export const postgresUrl = described('postgres:// address', makeValidator(checkedPostgresUrl));
/** Separated by commas. */
export const postgresUrls = described(
  'postgres:// addresses',
  makeValidator((text: string) => listOf(text).map(checkedPostgresUrl)),
);
export const redisUrl = address('redis:// or rediss://', /^rediss?:$/);

export const secret = described(
  '32 or more of letters, digits, `-._~+/`',
  makeValidator((text: string) => {
    if (!/^[A-Za-z0-9\-._~+/]{32,}=*$/.test(text)) {
      throw new EnvError('must be at least 32 letters, digits or -._~+/ (RFC 6750), hard to guess');
    }
    return text;
  }),
);

export const origins = described(
  '`https://shop.example`, several',
  makeValidator((text: string) => {
    const list = listOf(text);
    for (const one of list) {
      if (!URL.canParse(one) || new URL(one).origin !== one) {
        throw new EnvError(`must be origins like https://shop.example, separated by commas, not "${one}"`);
      }
    }
    return list;
  }),
);

/** `false`, a number of hops, or addresses and networks of proxies. */
export const proxies = described(
  '`false`, 1 to 99, addresses',
  makeValidator((text: string): false | number | string[] => {
    if (text === 'false') return false;
    if (/^[1-9]\d?$/.test(text)) return Number(text);
    const list = listOf(text);
    if (!list.every((one) => /^[\da-f.:]+(?:\/\d{1,3})?$|^(?:loopback|linklocal|uniquelocal)$/i.test(one))) {
      throw new EnvError('must be `false`, a number of hops, or addresses and networks of proxies separated by commas');
    }
    return list;
  }),
);

function listOf(text: string): string[] {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean);
}

/**
 * Every variable with its value in force, for the log: of keys only that they are set, of URLs only where they lead. A
 * password may be in the user's place, or among the parameters.
 */
export function withoutSecrets(values: object): Record<string, unknown> {
  const entries = Object.entries(values).map(([name, value]) => [
    name,
    value === undefined ? value : shown(name, value),
  ]);
  return Object.fromEntries(entries);
}

function shown(name: string, value: unknown): unknown {
  if (/_(?:API_KEY|SECRET|PASSWORD|TOKEN)$/.test(name)) return 'set';
  if (!/_URLS?$/.test(name)) return value;
  return Array.isArray(value) ? value.map(placeOf) : placeOf(`${value}`);
}

function placeOf(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
