export const onlyQueries =
  'By GET only queries are answered: send a mutation by POST, and a subscription with `Accept: text/event-stream`.';

/** Messages of Apollo Server and graphql-js that do not say what would be right, and what is said instead. */
const inTheirWords: Array<[RegExp, string]> = [
  [/^Operation batching disabled\.$/, 'The body must be one operation, a JSON object: a list of them is not accepted.'],
  [
    /^POST body missing, invalid Content-Type, or JSON object has no keys\.$/,
    'The body must be a JSON object with a member `query`, sent with Content-Type: application/json.',
  ],
  [
    /^Syntax Error: Document contains more tha[nt] (\d+) tokens.*$/,
    'The document has too many tokens: more than $1. Ask for fewer fields at a time.',
  ],
  [/^GET requests only support query operations, .*$/, onlyQueries],
  [/^GraphQL queries must be strings\.$/, '`query` must be a string.'],
  [
    /^GraphQL operations must contain a non-empty `query` or .*$/,
    'There is no `query`: it must be the text of an operation.',
  ],
  [/^(`\w+`) in a POST body must be (.+) if provided\.$/, '$1 must be $2.'],
  [
    /^Must provide operation name if query contains multiple operations\.$/,
    'The document has several operations: `operationName` must name one of them.',
  ],
  [/^(Unknown operation named .*)\.$/s, '$1: `operationName` must be that of an operation in the document.'],
];

export function plainWords(message: string): string {
  const [words, ours] = inTheirWords.find(([pattern]) => pattern.test(message)) ?? [];
  return words && ours ? message.replace(words, ours) : message;
}
