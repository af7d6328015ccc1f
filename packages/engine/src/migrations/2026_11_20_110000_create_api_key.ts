import { Migration } from '@mikro-orm/migrations';

/** Older stores have the table from `create_pet_and_api_key`. */
export const createApiKey = `
  create table if not exists "api_key" (
    "id" serial primary key,
    "name" text not null,
    "scope" text not null,
    "hint" text not null,
    "hash" text not null,
    "previous_hash" text null,
    "previous_expires_at" timestamptz null,
    "created_at" timestamptz not null default now(),
    "expires_at" timestamptz null,
    "last_used_at" timestamptz null,
    "revoked_at" timestamptz null,
    constraint "api_key_hash_unique" unique ("hash"),
    constraint "api_key_previous_hash_unique" unique ("previous_hash"),
    constraint "api_key_scope_check" check ("scope" in ('read', 'write'))
  )`;

export class CreateApiKey extends Migration {
  override up(): void {
    this.addSql(createApiKey);
  }
}
