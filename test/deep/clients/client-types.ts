import { readFileSync, writeFileSync } from 'node:fs';
import openapiTypescript, {
  astToString,
  COMMENT_HEADER,
} from 'openapi-typescript';
import ts from 'typescript';

/**
 * Generates the types of clients/typescript from the contract. An int64 is a
 * `bigint`, and `int64Members` names these members for the JSON reader.
 * `--check` only compares. The file is here because openapi-typescript needs
 * TypeScript 5.
 */
const path = 'clients/typescript/src/generated/openapi.ts';

interface Schema {
  format?: string;
  properties?: Record<string, Schema>;
}

const document = JSON.parse(readFileSync('schema/openapi.json', 'utf8'));
const bigint = ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword);
const types = await openapiTypescript(document, {
  transform: ({ format }) => (format === 'int64' ? bigint : undefined),
});
const names = Object.values(
  document.components.schemas as Record<string, Schema>,
).flatMap(({ properties = {} }) =>
  Object.entries(properties).flatMap(([name, { format }]) =>
    format === 'int64' ? [name] : [],
  ),
);
const int64Members = `export const int64Members = ${JSON.stringify([...new Set(names)].sort())};\n`;
const text = `${COMMENT_HEADER}${astToString(types)}${int64Members}`;

if (!process.argv.includes('--check')) writeFileSync(path, text);
else if (readFileSync(path, 'utf8') !== text)
  throw new Error(`${path} is not what npm run codegen makes.`);
