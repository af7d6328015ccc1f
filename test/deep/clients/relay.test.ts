import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { newFolder } from '../../support/folder.ts';
import { graphqlText } from '../../support/graphql.ts';
import { afterAll, expect, test } from '../../support/jest.ts';
import { rest } from '../../support/rest.ts';
import { storeForAll } from '../../support/store.ts';

const require = createRequire(import.meta.url);

/** A list as a Relay application writes it: a fragment that can be refetched, on a connection. */
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

let project: string;
const store = storeForAll({}, async () => {
  project = await newFolder();
  await mkdir(join(project, 'src'));
  await cp('schema/schema.graphql', join(project, 'schema.graphql'));
  await writeFile(join(project, 'src/PetList.ts'), component);
  const config = { src: './src', schema: './schema.graphql', language: 'typescript' };
  await writeFile(join(project, 'relay.config.json'), JSON.stringify(config));
});
afterAll(() => rm(project, { recursive: true }));

test('relay-compiler compiles a fragment on the connection, and its query walks the pages', async () => {
  await promisify(execFile)(process.execPath, [require.resolve('relay-compiler/cli.js')], { cwd: project });
  const artifact = await readFile(join(project, 'src/__generated__/PetListPaginationQuery.graphql.ts'), 'utf8');
  const query = JSON.parse(/"text": (".*")/.exec(artifact)?.[1] ?? '""');

  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of names) {
    await rest(store, '/v1/pets', { method: 'POST', json: { name, categoryId: 1, status: 'sold' } });
  }
  const walked: string[] = [];
  let cursor: string | undefined;
  do {
    const { data, errors } = await graphqlText(store, { query, variables: { cursor, status: 'sold' } });
    expect(errors).toBeUndefined();
    const { edges, pageInfo } = data.petsConnection;
    walked.push(...edges.map(({ node }: { node: { name: string } }) => node.name));
    const [startCursor, endCursor] = [edges[0].cursor, edges.at(-1).cursor];
    expect(pageInfo).toMatchObject({ startCursor, endCursor, hasPreviousPage: false });
    cursor = pageInfo.hasNextPage ? endCursor : undefined;
  } while (cursor);
  expect(walked).toEqual(names);
});
