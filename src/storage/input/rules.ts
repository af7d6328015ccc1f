import type { TSchema } from 'typebox';
import { int64, int64From, int64FromText } from './int64.ts';

/** The validation of one member of an input. */
export interface Rule {
  /** @returns the value for the service; undefined when the given value is invalid. */
  read(value: unknown): unknown;
  /** Describes valid values, for the error about an invalid one. */
  says(value: unknown): string;
  /** For text: its maximum length in characters. */
  readonly maxLength?: number;
}

/** The JSON Schema of a member, from which a rule is made. */
interface Member extends Omit<TSchema, 'type'> {
  type?: string;
  format?: string;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  allOf?: Member[];
  anyOf?: Member[];
  nullable?: boolean;
}

/** @throws Error for a schema that cannot be validated */
export function ruleOf(schema: TSchema, isText: boolean): Rule {
  const { type, format, enum: values, minimum, maximum, maxLength, allOf, anyOf, nullable } = schema as Member;
  if (nullable) return orNull(ruleOf({ ...schema, nullable: false }, isText));
  if (anyOf?.length === 2 && anyOf[1]?.type === 'null') return orNull(ruleOf(anyOf[0] as TSchema, isText));
  if (allOf?.length === 1) return ruleOf(allOf[0] as TSchema, isText);
  if (values) return oneOf(values);
  if (type === 'string' && format === 'date-time') return moment;
  if (type === 'string' && maxLength !== undefined) return textWithin(maxLength);
  const isBounded = minimum !== undefined && maximum !== undefined;
  if (type === 'integer' && (format === 'int64' || isBounded)) {
    return integerWithin(BigInt(minimum ?? int64.min), BigInt(maximum ?? int64.max), isText);
  }
  if (type === 'boolean') return trueOrFalse(isText);
  if (type === 'number') return finite(isText);
  throw new Error(`No rule checks ${JSON.stringify(schema)}: bound it, or give it a rule in input/rules.ts.`);
}

function orNull(rule: Rule): Rule {
  return {
    ...rule,
    read: (value) => (value === null ? null : rule.read(value)),
    says: (value) => `${rule.says(value)}, or null`,
  };
}

function trueOrFalse(isText: boolean): Rule {
  return {
    says: () => 'true or false',
    read(value) {
      if (isText && (value === 'true' || value === 'false')) return value === 'true';
      return typeof value === 'boolean' ? value : undefined;
    },
  };
}

function finite(isText: boolean): Rule {
  return {
    says: () => 'a number',
    read(value) {
      const isDigits = isText && typeof value === 'string' && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(value);
      const number = isDigits || typeof value === 'bigint' ? Number(value) : value;
      return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
    },
  };
}

function oneOf(values: string[]): Rule {
  return {
    read: (value) => (values.includes(value as string) ? value : undefined),
    says: () => `one of ${values.join(', ')}`,
  };
}

function integerWithin(min: bigint, max: bigint, isText: boolean): Rule {
  return {
    says: () => `an integer between ${min} and ${max}`,
    read(value) {
      const integer = isText && typeof value === 'string' ? int64FromText(value) : int64From(value);
      return integer !== undefined && integer >= min && integer <= max ? integer : undefined;
    },
  };
}

// PostgreSQL's text holds every Unicode string except those with U+0000; a lone surrogate is not a character.
function textWithin(maxLength: number): Rule {
  const isText = (value: string) => !value.includes('\u0000') && value.isWellFormed();
  return {
    maxLength,
    read: (value) => (typeof value === 'string' && hasAtMost(maxLength, value) && isText(value) ? value : undefined),
    says(value) {
      if (typeof value !== 'string') return 'a string';
      return isText(value) ? `at most ${maxLength} characters long` : 'free of U+0000 and of lone surrogates';
    },
  };
}

/** Counts Unicode code points, as JSON Schema's `maxLength` does: each is one or two units of a JavaScript string. */
function hasAtMost(maxLength: number, text: string): boolean {
  if (text.length <= maxLength) return true;
  return text.length <= 2 * maxLength && [...text].length <= maxLength;
}

const rfc3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i;
const years = { first: Date.parse('0001-01-01T00:00:00Z'), last: Date.parse('9999-12-31T23:59:59.999Z') };

/** Parses RFC 3339, section 5.6, to a Date of the years 1 to 9999. */
const moment: Rule = {
  says: () => 'a date and time like 2030-12-05T00:00:00Z',
  read(value) {
    const [text = '', clock = ''] = rfc3339.exec(`${value}`) ?? [];
    const date = new Date(text);
    if (typeof value !== 'string' || !(date.getTime() >= years.first && date.getTime() <= years.last)) return undefined;
    // Date takes 30 February for 1 March, and 24:00 for the next day.
    const isReal = new Date(`${clock}Z`).toJSON()?.slice(0, 19) === clock.toUpperCase();
    return isReal ? date : undefined;
  },
};
