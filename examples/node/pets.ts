import { AnimalStore, StoreError } from 'animal-store-client';

const { STORE_URL: url = 'http://127.0.0.1:4000', KEY: key = '' } = process.env;

try {
  const store = new AnimalStore({ url, key });

  const rex = await store.create({
    name: 'Rex',
    categoryId: 9007199254740993n,
  });
  console.log(
    `added ${rex.name} with the id ${rex.id} in the category ${rex.categoryId}`,
  );

  let count = 0;
  for await (const { status } of store.pets({ status: 'available' }))
    if (status === 'available') count++;
  console.log(`${count} available by REST`);

  const text =
    'query ($after: ID) { pets(after: $after) { id name categoryId } }';
  const { pets } = await store.graphql<{
    pets: Array<{ id: string; categoryId: string }>;
  }>(text, {
    after: rex.id - 1n,
  });
  console.log(`by GraphQL: id ${pets[0]?.id}, category ${pets[0]?.categoryId}`);
} catch (error) {
  console.error(
    error instanceof StoreError ? `${error.code}: ${error.message}` : error,
  );
  process.exitCode = 1;
}
