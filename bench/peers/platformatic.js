import { create } from '@platformatic/db';

// Platformatic DB in one process: it derives REST and GraphQL from the tables.
const db = await create(import.meta.dirname, {
  server: {
    hostname: '127.0.0.1',
    port: Number(process.env.PORT),
    logger: { level: 'silent' },
  },
  db: {
    connectionString: process.env.BENCH_DATABASE_URL,
    poolSize: 10,
    openapi: true,
    graphql: true,
    events: false,
    ignore: { api_key: true, mikro_orm_migrations: true },
  },
  watch: false,
});
await db.start({ listen: true });
