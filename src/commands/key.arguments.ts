import { InvalidArgumentError } from 'commander';

const milliseconds: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const span = /^(\d{1,6})([smhd])$/;

/** Parses `90d`, `12h`, `30m`, `10s` or `0`, to milliseconds. */
export function duration(text: string): number {
  if (text === '0') return 0;
  const [, amount, unit = ''] = span.exec(text) ?? [];
  if (!amount) throw new InvalidArgumentError('It must be a time like 90d, 12h, 30m or 10s.');
  return Number(amount) * (milliseconds[unit] ?? 0);
}

const notAMoment = 'It must be a time like 90d, 12h, 30m or 10s, or a date like 2031-01-31.';

/** Parses a time from now, or a date (UTC) with or without a time of day; it must be in the future. */
export function momentFrom(text: string): Date {
  const isDate = /^\d{4}-\d\d-\d\d(T[\d:.]+Z)?$/.test(text);
  if (!isDate && text !== '0' && !span.test(text)) throw new InvalidArgumentError(notAMoment);
  const moment = new Date(isDate ? text : Date.now() + duration(text));
  // Date turns a nonexistent day into one of the next month.
  if (isDate && new Date(text.slice(0, 10)).getUTCDate() !== Number(text.slice(8, 10))) {
    throw new InvalidArgumentError('There is no such date.');
  }
  if (!(moment.getTime() > Date.now())) throw new InvalidArgumentError('It must be in the future.');
  return moment;
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}
