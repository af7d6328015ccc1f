import { Migration } from '@mikro-orm/migrations';

export class CreateDeprecatedCall extends Migration {
  override up(): void {
    this.addSql(`
      create table "deprecated_call" (
        "key_id" int not null,
        "operation" text not null,
        "removal" timestamptz not null,
        "calls" bigint not null,
        "last_call_at" timestamptz not null,
        constraint "deprecated_call_pkey" primary key ("key_id", "operation")
      )`);
  }
}
