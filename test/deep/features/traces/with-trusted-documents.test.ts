import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { databaseForEach } from '../../../support/fixtures.ts';
import { newFolder } from '../../../support/folder.ts';
import { graphqlText } from '../../../support/graphql.ts';
import { expect, test } from '../../../support/jest.ts';
import { bootstrapKey, startServer } from '../../../support/process.ts';
import { startReceiver } from './otlp.ts';

const database = databaseForEach();

test('a span has the name of its operation, because the operator has chosen it', async () => {
  const collector = await startReceiver();
  const manifest = join(await newFolder(), 'manifest.json');
  const query = 'query Shop { pets { id } }';
  writeFileSync(manifest, JSON.stringify({ shop: query }));
  const server = await startServer({
    ...database.env,
    BOOTSTRAP_API_KEY: bootstrapKey,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    TRUSTED_DOCUMENTS: manifest,
  });
  await graphqlText(server, { query }, bootstrapKey);
  expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
  const operation = collector.spans.find(({ kind }) => kind === 1);
  expect(operation).toMatchObject({
    name: 'query',
    attributes: { 'graphql.operation.name': 'Shop' },
  });
  await collector.close();
});
