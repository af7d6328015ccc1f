/**
 * JSON with exact numbers: `JSON.parse` would change 9007199254740993 to
 * ...992. `JSON.stringify` writes them as they were
 * (https://github.com/tc39/proposal-json-parse-with-source).
 *
 * @throws SyntaxError, or Error if this browser would change a number
 */
export const parseExactly = (text) =>
  JSON.parse(text, (_name, value, { source } = {}) =>
    typeof value === 'number' ? exactly(value, source) : value,
  );

function exactly(value, source) {
  if (`${value}` === source) return value;
  if (JSON.rawJSON) return JSON.rawJSON(source);
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  throw new Error(
    `This browser would change a number to ${value}. Write it as a string.`,
  );
}
