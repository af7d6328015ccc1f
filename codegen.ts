import type { CodegenConfig } from '@graphql-codegen/cli';

const client = {
  preset: 'client',
  presetConfig: { fragmentMasking: false },
  config: {
    useTypeImports: true,
    enumsAsTypes: true,
    importExtension: '.ts',
    // Int64 as digits. Not `number`, which may have been rounded before; not `bigint`: the clients write variables with
    // JSON.stringify, which throws.
    scalars: { ID: { input: 'string', output: 'string' } },
  },
} as const;
/** animal-store-client and the tests write a `bigint` in variables. */
const takesBigints = { ...client.config, scalars: { ID: { input: 'string | bigint', output: 'string' } } };

/** Typed documents: the tests' from files, the React example's from what stands beside its components. */
const config: CodegenConfig = {
  schema: 'schema/schema.graphql',
  generates: {
    'test/support/generated/': { ...client, config: takesBigints, documents: 'test/graphql/operations/*.graphql' },
    'examples/react/src/generated/': { ...client, documents: 'examples/react/src/*.tsx' },
  },
};

export default config;
