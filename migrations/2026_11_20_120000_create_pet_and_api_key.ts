import { Migration } from '@mikro-orm/migrations';

export class CreatePetAndApiKey extends Migration {
  override up(): void {
    this.addSql(`
      create table "pet" (
        "id" bigserial primary key,
        "name" text not null,
        "category_id" bigint not null,
        "status" text not null
      )`);
    this.addSql('create index "pet_status_id_index" on "pet" ("status", "id")');
    this.addSql(
      `alter table "pet" add constraint "pet_status_check" check ("status" in ('available', 'pending', 'sold'))`,
    );
    // A backup of an older store lists no other migration for this table.
    this.addSql(`
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
  )`);
  }
}
