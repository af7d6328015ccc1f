import type { CodegenConfig } from '@graphql-codegen/cli';

/** Typed documents for the operations of the tests and, as an example, for any frontend. */
const config: CodegenConfig = {
  schema: 'schema/schema.graphql',
  documents: 'test/graphql/operations/*.graphql',
  generates: {
    'test/support/generated/': {
      preset: 'client',
      presetConfig: { fragmentMasking: false },
      config: {
        useTypeImports: true,
        enumsAsTypes: true,
        importExtension: '.ts',
        scalars: { ID: { input: 'string | number | bigint', output: 'string' } },
      },
    },
  },
};

export default config;
