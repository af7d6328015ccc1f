import { Migration } from '@mikro-orm/migrations';

export class CreateKeyEvent extends Migration {
  override up(): void {
    this.addSql(`
      create table "key_event" (
        "id" serial primary key,
        "at" timestamptz not null default now(),
        "key_id" int not null,
        "hint" text not null,
        "change" text not null,
        "os_user" text not null,
        "sudo_user" text null,
        "host" text not null,
        "command" text not null,
        constraint "key_event_change_check" check ("change" in ('issued', 'rotated', 'revoked'))
      )`);
  }
}
