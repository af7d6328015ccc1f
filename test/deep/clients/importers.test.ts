// @ts-expect-error It declares no types.
import { openApiToBruno } from '@usebruno/converters';
import postman from 'openapi-to-postmanv2';
import { describe, expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * The importers of Postman and Bruno, on the served documents: a request works
 * with a key, without an edited address.
 */

const store = storeForAll();

/** A variable of the tools: `{{baseUrl}}`. */
const filled = (
  text: string,
  variables: Array<{ key: string; value: string }>,
) =>
  text.replace(
    /\{\{(\w+)\}\}/g,
    (_, name: string) => variables.find(({ key }) => key === name)?.value ?? '',
  );

/** @returns the address of `POST /pets` in Postman, with its variables */
async function inPostman(document: string): Promise<string> {
  const { output, reason } = await new Promise<any>((done, fail) => {
    postman.convert(
      { type: 'string', data: document },
      {},
      (error: unknown, result: unknown) => (error ? fail(error) : done(result)),
    );
  });
  expect(reason).toBeUndefined();
  const [{ data }] = output;
  expect(data.auth).toMatchObject({ type: 'bearer' });
  const requestsIn = ({ item, ...one }: any): any[] =>
    item?.flatMap(requestsIn) ?? [one];
  const { url } = requestsIn(data).find(
    ({ request }: any) => request.method === 'POST',
  ).request;
  return filled([...url.host, ...url.path].join('/'), data.variable);
}

/** The same in Bruno. */
async function inBruno(document: string): Promise<string> {
  const { items, environments, root }: any = openApiToBruno(
    JSON.parse(document),
  );
  expect(root.request.auth).toMatchObject({ mode: 'bearer' });
  const requests = items.flatMap((folder: any) => folder.items);
  const { url } = requests.find(
    ({ request }: any) => request.method === 'POST',
  ).request;
  return filled(
    url,
    environments[0].variables.map(({ name, value }: any) => ({
      key: name,
      value,
    })),
  );
}

describe.each(['openapi.json', 'openapi-3.0.json'])('%s', (name) => {
  test.each([
    ['Postman', inPostman],
    ['Bruno', inBruno],
  ])(
    'imported into %s, creates an animal at the address of the service',
    async (_tool, addressIn) => {
      const address = await addressIn(
        await (await fetch(`${store.origin}/v1/${name}`)).text(),
      );
      expect(address).toBe(`${store.origin}/v1/pets`);
      const headers = {
        authorization: `Bearer ${store.key}`,
        'content-type': 'application/json',
      };
      const { status } = await fetch(address, {
        method: 'POST',
        headers,
        body: '{"name":"Rex","categoryId":5}',
      });
      expect(status).toBe(201);
    },
  );
});
