import { Migration } from '@mikro-orm/migrations';
import { createApiKey } from './2026_11_20_110000_create_api_key.ts';

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
    this.addSql(createApiKey);
  }

  override down(): void {
    this.addSql('drop table "pet"');
  }
}
