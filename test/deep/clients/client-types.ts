import { readFileSync, writeFileSync } from 'node:fs';
import openapiTypescript, {
  astToString,
  COMMENT_HEADER,
} from 'openapi-typescript';
import ts from 'typescript';
import { longestKey } from '../../../packages/engine/dist/access/idempotency/idempotency-key.js';

/**
 * Generates the types of clients/typescript, and the rules of its FakeService,
 * from the contract. An int64 is a `bigint`, and `int64Members` names these
 * members for the JSON reader.
 * `--check` only compares. The file is here because openapi-typescript needs
 * TypeScript 5.
 */
const folder = 'clients/typescript/src/generated';

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

const { get, post } = document.paths['/pets'];
const { NewPet, PetStatus } = document.components.schemas;
const limit = get.parameters.find(
  ({ name }: { name: string }) => name === 'limit',
).schema;
const { example } = post.responses['422'].content['application/json'];
const rules = {
  longestName: NewPet.properties.name.maxLength,
  statuses: PetStatus.enum,
  defaultStatus: NewPet.properties.status.default,
  limit: { min: limit.minimum, max: limit.maximum, default: limit.default },
  longestKey,
  keyReused: example.message,
};
const rulesText = `${COMMENT_HEADER}export const rules = ${JSON.stringify(rules, null, 2)} as const;\n`;

for (const [name, content] of Object.entries({
  'openapi.ts': text,
  'rules.ts': rulesText,
})) {
  const path = `${folder}/${name}`;
  if (!process.argv.includes('--check')) writeFileSync(path, content);
  else if (readFileSync(path, 'utf8') !== content)
    throw new Error(`${path} is not what npm run codegen makes.`);
}
