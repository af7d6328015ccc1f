/** A deprecated operation: since when it is deprecated, when it is removed, and what replaces it. */
export interface Deprecation {
  since: Date;
  removal: Date;
  /** What to use instead, as text for people. */
  replacement: string;
}

/** Formats the day, as in `5 December 2030`. */
export function dayOf(date: Date): string {
  return new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' }).format(date);
}
