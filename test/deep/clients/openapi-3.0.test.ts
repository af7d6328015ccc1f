import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { newFolder } from '../../support/folder.ts';
import { expect, test } from '../../support/jest.ts';
import { storeForAll } from '../../support/store.ts';

/**
 * A generator for OpenAPI 3.0 only, with its default settings. It refuses local
 * addresses, so it gets a file.
 */

const store = storeForAll();
const run = promisify(execFile);
const require = createRequire(import.meta.url);
const generator = require.resolve('openapi-typescript-codegen/bin/index.js');

test('openapi-typescript-codegen generates a client from the 3.0 document that creates, lists and gets errors', async () => {
  const folder = await newFolder();
  try {
    const input = join(folder, 'openapi.json');
    await writeFile(
      input,
      await (await fetch(`${store.origin}/v1/openapi-3.0.json`)).text(),
    );
    await run(process.execPath, [
      generator,
      '--input',
      input,
      '--output',
      join(folder, 'client'),
    ]);
    const outfile = join(folder, 'client.mjs');
    const entryPoints = [join(folder, 'client/index.ts')];
    await build({
      entryPoints,
      bundle: true,
      format: 'esm',
      outfile,
      logLevel: 'silent',
    });
    const { OpenAPI, PetsService, StoreService } = await import(
      pathToFileURL(outfile).href
    );
    expect([OpenAPI.BASE, OpenAPI.VERSION]).toEqual([
      `${store.origin}/v1`,
      '1.0.0',
    ]);
    OpenAPI.TOKEN = store.key;

    const rex = await PetsService.createPet({
      name: 'Rex',
      categoryId: 5,
      status: 'sold',
    });
    expect(rex).toEqual({
      id: expect.any(Number),
      name: 'Rex',
      categoryId: 5,
      status: 'sold',
    });
    const tom = await PetsService.createPet(
      { name: 'Tom', categoryId: 5 },
      'tom-1',
    );
    expect(
      await PetsService.createPet({ name: 'Tom', categoryId: 5 }, 'tom-1'),
    ).toEqual(tom);
    expect(await PetsService.listPets('sold')).toEqual([rex]);
    expect(await PetsService.listPets(undefined, 1, rex.id)).toEqual([tom]);
    const body = {
      code: 'BAD_USER_INPUT',
      message: 'categoryId is required.',
      status: 400,
    };
    await expect(PetsService.createPet({ name: 'Rex' })).rejects.toMatchObject({
      name: 'ApiError',
      status: 400,
      body,
    });
    await expect(StoreService.listOrders()).rejects.toMatchObject({
      status: 501,
      body: { code: 'NOT_IMPLEMENTED' },
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});
