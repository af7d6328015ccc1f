import type { CodegenConfig } from '@graphql-codegen/cli';

const client = {
  preset: 'client',
  presetConfig: { fragmentMasking: false },
  config: {
    useTypeImports: true,
    enumsAsTypes: true,
    importExtension: '.ts',
    // An int64 comes as digits; whatever has it exactly may be sent. A `number` may have been rounded before.
    scalars: { ID: { input: 'string | bigint', output: 'string' } },
  },
} as const;

/** Typed documents: the tests' from files, the React example's from what stands beside its components. */
const config: CodegenConfig = {
  schema: 'schema/schema.graphql',
  generates: {
    'test/support/generated/': { ...client, documents: 'test/graphql/operations/*.graphql' },
    'examples/react/src/generated/': { ...client, documents: 'examples/react/src/*.tsx' },
  },
};

export default config;
