import { Migration } from '@mikro-orm/migrations';

export class CreateIdempotencyKey extends Migration {
  override up(): void {
    this.addSql(`
      create table "idempotency_key" (
        "key_id" int not null,
        "operation" text not null,
        "hash" bytea not null,
        "fingerprint" bytea not null,
        "generated" text[] not null,
        "created_at" timestamptz not null default now(),
        constraint "idempotency_key_pkey" primary key ("key_id", "operation", "hash")
      )`);
    this.addSql(
      'create index "idempotency_key_created_at_index" on "idempotency_key" ("created_at")',
    );
  }
}
