import { isIP } from 'node:net';

/** A variable of the environment: how it is read, and what it means. */
export interface Variable<Value> {
  default: Value;
  /** What it means, in a sentence. */
  desc: string;
  /** The accepted values, in Markdown. */
  takes: string;
  /** The variable without which it has no effect. */
  needs: string | undefined;
  /** True when no log may show its value. */
  isSecret: boolean;
  /**
   * @throws Error whose message continues the variable's name: `must be ...`
   */
  parse(text: string): Value;
}

export function kind<Value>(
  takes: string,
  parse: (text: string) => Value,
  isSecret = false,
) {
  return <Default extends Value | undefined>(
    value: Default,
    desc: string,
    needs?: string,
  ): Variable<Value | Default> => ({
    default: value,
    desc,
    takes,
    needs,
    isSecret,
    parse,
  });
}

function wholeNumber(text: string, min: number, max: number, other = '') {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new Error(
    `must be a whole number between ${min} and ${max}${other}, not "${text}"`,
  );
}

/** A whole number between two bounds. */
export const whole = (min: number, max: number) =>
  kind(`${min} to ${max}`, (text) => wholeNumber(text, min, max));
export const port = whole(1, 65_535);
/** Up to a day. */
export const milliseconds = whole(1, 86_400_000);

export const share = kind('0 to 1', (text) => {
  if (/^(?:0|1|[01]?\.\d{1,9})$/.test(text) && Number(text) <= 1)
    return Number(text);
  throw new Error(`must be a number between 0 and 1, not "${text}"`);
});

export const processes = kind('1 to 256, `auto`', (text) => {
  if (text === 'auto') return text;
  return wholeNumber(text, 1, 256, ', or auto');
});

/** Any text. */
export const text = kind('text', (text) => text);
/** A text that no log shows. */
export const secretText = kind('text', (text) => text, true);

function choice<const Choice extends string>(...choices: Choice[]) {
  return kind(choices.map((choice) => `\`${choice}\``).join(' '), (text) => {
    const found = choices.find((choice) => choice === text);
    if (found === undefined)
      throw new Error(`must be one of ${choices.join(', ')}, not "${text}"`);
    return found;
  });
}

export const logLevel = choice(
  'fatal',
  'error',
  'warn',
  'info',
  'debug',
  'trace',
  'silent',
);
export const logFormat = choice('auto', 'json');
export const flagOrAuto = choice('auto', 'true', 'false');

/** `true` or `false`. */
export const flag = kind('`true` `false`', (text) => {
  if (text === 'true' || text === 'false') return text === 'true';
  throw new Error(`must be true or false, not "${text}"`);
});

const sslModes = [
  'disable',
  'allow',
  'prefer',
  'require',
  'verify-ca',
  'verify-full',
  'no-verify',
];

export function checkedPostgresUrl(given: string) {
  // With credentials libpq needs no host, for a socket (`?host=/folder`).
  const text = given.replace(/^(\w+:\/\/[^/?#]*@)(?=[:/?]|$)/, '$1localhost');
  try {
    decodeURIComponent(text);
  } catch {
    throw new Error('has a % that encodes no character: write %25');
  }
  // An unescaped @ ends the password, so the hosts begin after the last one.
  if (/^postgres(?:ql)?:\/\/(?:[^/?]*@)?[^/?@]*,[^/?@]*(?:[/?]|$)/.test(text)) {
    throw new Error(
      'names several hosts; it takes one (docs/scale.md, Failover)',
    );
  }
  const url = URL.parse(text);
  const isPostgres = /^postgres(?:ql)?:$/.test(`${url?.protocol}`);
  // Separated by anything but commas, they would parse as one URL.
  const areSeveral = /\s|:\/\/.*:\/\//.test(text);
  if (!url || !isPostgres || areSeveral)
    throw new Error('must be a postgres:// address');
  if (url.pathname.length < 2)
    throw new Error('must name a database: postgres://host/database');
  const mode = url.searchParams.get('sslmode');
  if (mode && !sslModes.includes(mode))
    throw new Error(`has an sslmode that is none of ${sslModes.join(', ')}`);
  return text;
}

export const postgresUrl = kind('postgres:// address', checkedPostgresUrl);

export const secret = kind(
  '32 or more of letters, digits, `-._~+/`',
  (text) => {
    if (/^[A-Za-z0-9\-._~+/]{32,}=*$/.test(text)) return text;
    throw new Error(
      'must be at least 32 letters, digits or -._~+/ (RFC 6750), hard to guess',
    );
  },
  true,
);

export const origins = kind('list like `https://shop.example`', (text) => {
  const list = commaSeparated(text);
  const wrong = list.find((one) => URL.parse(one)?.origin !== one);
  if (wrong === undefined) return list;
  throw new Error(
    `must be origins like https://shop.example, separated by commas, not "${wrong}"`,
  );
});

/** Of `@fastify/proxy-addr`. */
const proxyNames = ['loopback', 'linklocal', 'uniquelocal'];

function isProxy(text: string) {
  const [, address = '', bits = '1'] = /^([^/]+)(?:\/(\d+))?$/.exec(text) ?? [];
  const most = { 4: 32, 6: 128 }[isIP(address)] ?? 0;
  const isNetwork = Number(bits) > 0 && Number(bits) <= most;
  return isNetwork || proxyNames.includes(text);
}

export const trustedProxies = kind('`false`, 1 to 99, addresses', (text) => {
  if (text === 'false') return false;
  if (/^[1-9]\d?$/.test(text)) return Number(text);
  const list = commaSeparated(text);
  if (list.every(isProxy)) return list;
  throw new Error(
    'must be `false`, a number of hops, or addresses and networks of proxies separated by commas',
  );
});

export function commaSeparated(text: string) {
  return text
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean);
}

/** Variables by their names. */
export type Variables = Record<string, Variable<unknown>>;
/** A module or a feature. */
export interface VariableOwner {
  readonly variables?: Variables;
}
export type ValuesOf<Given extends Variables> = {
  [Name in keyof Given]: Given[Name]['default'];
};

/**
 * Reads all variables from the environment. Pure.
 *
 * @param env an empty variable counts as absent. White space around a value is
 *   of the file that it comes from, such as the line end of a secret.
 * @throws Error that lists every mistake
 */
export function readVariables<Given extends Variables>(
  variables: Given,
  env: Record<string, string | undefined>,
) {
  const mistakes: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, one] of Object.entries(variables)) {
    const text = env[name]?.trim();
    try {
      if (env[name] && !text) throw new Error('is white space alone');
      values[name] = text ? one.parse(text) : one.default;
    } catch (error) {
      mistakes.push(`${name} ${(error as Error).message}`);
    }
  }
  for (const [name, { needs }] of Object.entries(variables)) {
    if (env[name] && needs && !env[needs])
      mistakes.push(`${name} has no effect without ${needs}`);
  }
  if (mistakes.length > 0)
    throw new Error(['Configuration error:', ...mistakes].join('\n  '));
  return values as ValuesOf<Given>;
}

/**
 * All values for a log, without secrets: `set` for a secret, and only protocol,
 * host and path of a URL (`*_URL`, `*_URLS`).
 */
export function withoutSecrets(
  variables: Variables,
  values: Record<string, unknown>,
): Record<string, unknown> {
  const place = (url: string) => {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  };
  const shown = ([name, value]: [string, unknown]) => {
    if (value !== undefined && variables[name]?.isSecret) return [name, 'set'];
    if (value === undefined || !/_URLS?$/.test(name)) return [name, value];
    return [name, Array.isArray(value) ? value.map(place) : place(`${value}`)];
  };
  return Object.fromEntries(Object.entries(values).map(shown));
}
