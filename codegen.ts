import type { CodegenConfig } from '@graphql-codegen/cli';

const client = {
  preset: 'client',
  presetConfig: { fragmentMasking: false },
  config: {
    useTypeImports: true,
    enumsAsTypes: true,
    importExtension: '.ts',
    // Int64 as a string of digits. A `number` may have been rounded. A `bigint`
    // makes JSON.stringify throw, which these clients call for variables.
    scalars: { ID: { input: 'string', output: 'string' } },
  },
} as const;
/** animal-store-client and the tests accept a `bigint` in variables. */
const bigintConfig = {
  ...client.config,
  scalars: { ID: { input: 'string | bigint', output: 'string' } },
};

/**
 * Generates typed documents: for the tests from files, for the React example
 * from the operations in its components.
 */
const config: CodegenConfig = {
  schema: 'schema/schema.graphql',
  generates: {
    'test/support/generated/': {
      ...client,
      config: bigintConfig,
      documents: 'test/graphql/operations/*.graphql',
    },
    'examples/react/src/generated/': {
      ...client,
      documents: 'examples/react/src/*.tsx',
    },
  },
};

export default config;
