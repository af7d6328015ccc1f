import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildSchema, parse, validate } from 'graphql';
import { newFolder } from '../../support/folder.ts';
import { expect, test } from '../../support/jest.ts';

const require = createRequire(import.meta.url);

/** The list of a Relay application: a refetchable fragment on a connection. */
const component = `import { graphql } from 'relay-runtime';

export const petList = graphql\`
  fragment PetList_query on Query
  @argumentDefinitions(
    count: { type: "Int", defaultValue: 2 }
    cursor: { type: "String" }
    status: { type: "PetStatus" }
  )
  @refetchable(queryName: "PetListPaginationQuery") {
    petsConnection(first: $count, after: $cursor, status: $status) @connection(key: "PetList_petsConnection") {
      edges { cursor node { id name status } }
      pageInfo { hasNextPage endCursor hasPreviousPage startCursor }
    }
  }
\`;
`;

test('relay-compiler compiles a fragment on the connection into a query that is valid for the schema', async () => {
  const project = await newFolder();
  try {
    await mkdir(join(project, 'src'));
    await cp('schema/schema.graphql', join(project, 'schema.graphql'));
    await writeFile(join(project, 'src/PetList.ts'), component);
    const config = {
      src: './src',
      schema: './schema.graphql',
      language: 'typescript',
    };
    await writeFile(join(project, 'relay.config.json'), JSON.stringify(config));
    await promisify(execFile)(
      process.execPath,
      [require.resolve('relay-compiler/cli.js')],
      { cwd: project },
    );
    const artifact = await readFile(
      join(project, 'src/__generated__/PetListPaginationQuery.graphql.ts'),
      'utf8',
    );
    const query = parse(
      JSON.parse(/"text": (".*")/.exec(artifact)?.[1] ?? '""'),
    );
    expect(
      validate(
        buildSchema(await readFile('schema/schema.graphql', 'utf8')),
        query,
      ),
    ).toEqual([]);
  } finally {
    await rm(project, { recursive: true });
  }
});
