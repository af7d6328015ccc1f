import { readFileSync } from 'node:fs';

const [beginning = '', ...chapters] = readFileSync(
  'docs/errors.md',
  'utf8',
).split(/^### /m);
const example = /^```json\n(.+)\n```$/m;

/** docs/errors.md: the response to a field that fails. */
export const documentedFieldError: unknown = JSON.parse(
  example.exec(beginning)?.[1] ?? 'null',
);

/** docs/errors.md: the example of each code, in its order. */
export const documentedErrors: ReadonlyMap<string, unknown> = new Map(
  chapters.map((chapter) => {
    const [, code = ''] = /^(\w+)\n\n\*\*\d{3}\.\*\* \w/.exec(chapter) ?? [];
    return [code, JSON.parse(example.exec(chapter)?.[1] ?? 'null')];
  }),
);
