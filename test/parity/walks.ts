import type { Outcome, SeenPet } from '../support/faces.ts';
import { graphqlText } from '../support/graphql.ts';
import { type RestResponse, rest } from '../support/rest.ts';
import type { Store } from '../support/store.ts';

/** A way through all pages of a list. @throws Error when the way itself is wrong: an end too early or too late */
type Walk = (store: Store, status: string | undefined, limit: number, length: number) => Promise<Outcome<SeenPet[]>>;

/** Follows `Link: rel="next"` to the page that has none. */
const alongLinks: Walk = async (store, status, limit, length) => {
  const pets: SeenPet[] = [];
  let path: string | undefined = `/v1/pets?limit=${limit}${status ? `&status=${status}` : ''}`;
  for (let page = 1; path; page += 1) {
    const { status: code, json, headers }: RestResponse = await rest(store, path);
    if (code !== 200) return json;
    for (const pet of json) pets.push({ ...pet, id: `${pet.id}`, categoryId: `${pet.categoryId}` });
    const next: string | undefined = /^<(.*)>; rel="next"$/.exec(`${headers.link ?? ''}`)?.[1];
    const isLast = page * limit >= length;
    if (pets.length > length) throw new Error(`page ${page}, ${path}, shows more animals than there are`);
    if (isLast !== (next === undefined)) throw new Error(`page ${page}, ${path}, has the Link ${headers.link}`);
    if (next && !next.startsWith(`${store.origin}/v1/pets?`)) throw new Error(`${path} leads to ${next}`);
    path = next?.slice(store.origin.length);
  }
  return { data: pets };
};

const query = `query ($first: Int, $after: String, $status: PetStatus) {
  petsConnection(first: $first, after: $after, status: $status) {
    edges { cursor node { id name categoryId status } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`;

/** Follows the cursors to the page that says that it is the last. */
const alongCursors: Walk = async (store, status, first, length) => {
  const pets: SeenPet[] = [];
  for (let after: string | undefined; ; ) {
    const { data, errors } = await graphqlText<any>(store, { query, variables: { first, after, status } });
    if (errors?.[0]) return { ...errors[0].extensions, message: errors[0].message };
    const { edges, pageInfo } = data.petsConnection;
    for (const { node } of edges) pets.push(node);
    if (pets.length > length) throw new Error(`after the cursor ${after} there are more animals than there are`);
    const [start = null, end = null] = [edges.at(0)?.cursor, edges.at(-1)?.cursor];
    const expected = { hasNextPage: pets.length < length, hasPreviousPage: false, startCursor: start, endCursor: end };
    const differs = Object.entries(expected).filter(([name, value]) => pageInfo[name] !== value);
    if (differs.length > 0) throw new Error(`pageInfo is ${JSON.stringify(pageInfo)}, not ${JSON.stringify(expected)}`);
    if (!pageInfo.hasNextPage) return { data: pets };
    after = pageInfo.endCursor;
  }
};

export const walks: Record<string, Walk> = {
  'REST list': alongLinks,
  'GraphQL connection': alongCursors,
};
