import { Migration } from '@mikro-orm/migrations';

/** Named 2026_11_29_020000_create_webhook. */
export class CreateWebhook extends Migration {
  override up(): void {
    this.addSql(`
      create table "webhook" (
        "id" bigserial primary key,
        "url" text not null,
        "types" text[] not null,
        "position" bigint null,
        "owner" text not null,
        "version" int not null default 1,
        "key" text not null,
        "previous_key" text null,
        "previous_until" timestamptz null,
        "caller" jsonb not null,
        "attempts" int not null default 0,
        "failed_at" timestamptz null,
        "retry_at" timestamptz null,
        "is_off" boolean not null default false,
        "is_tested" boolean not null default false,
        "log" jsonb not null default '[]'
      )`);
    this.addSql(
      'create index "webhook_owner_id_index" on "webhook" ("owner", "id")',
    );
    // One row: the process that sends.
    this.addSql(`
      create table "webhook_lease" (
        "id" int not null primary key,
        "holder" text not null,
        "until" timestamptz not null
      )`);
  }
}
