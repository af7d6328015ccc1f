import type { FastifyInstance } from 'fastify';
import { type FrontPageOptions, frontPage } from './front-page.ts';
import { reference } from './reference.ts';
import { type SchemaTextOptions, schemaText } from './schema-text.ts';
import { smallFiles } from './small-files.ts';

export type PagesOptions = FrontPageOptions & SchemaTextOptions;

/** What people and their browsers find without a key. Register it last: the front page links to what is there. */
export async function pages(app: FastifyInstance, options: PagesOptions): Promise<void> {
  await app.register(frontPage, options);
  await app.register(smallFiles);
  await app.register(schemaText, options);
  await app.register(reference);
}
