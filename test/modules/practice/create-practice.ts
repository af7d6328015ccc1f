import { Migration } from '@mikro-orm/migrations';

/** As `npm run migration:create` writes it. */
export class CreatePractice extends Migration {
  override up(): void {
    this.addSql(
      `create table "owner" ("id" bigserial primary key, "name" text not null, "email" text not null, "phone" text null, "version" int not null default 1)`,
    );
    this.addSql(
      `create index "owner_name_id" on "owner" (lower("name") collate "C", "id")`,
    );
    this.addSql(
      `alter table "owner" add constraint "owner_email_unique" unique ("email")`,
    );
    this.addSql(
      `create table "tag" ("id" bigserial primary key, "name" text not null, "version" int not null default 1)`,
    );
    this.addSql(
      `alter table "tag" add constraint "tag_name_unique" unique ("name")`,
    );
    this.addSql(
      `create table "pet_tag" ("id" bigserial primary key, "pet_id" bigint not null, "tag_id" bigint not null, "version" int not null default 1)`,
    );
    this.addSql(
      `create index "pet_tag_pet_id_id_index" on "pet_tag" ("pet_id", "id")`,
    );
    this.addSql(
      `create index "pet_tag_tag_id_id_index" on "pet_tag" ("tag_id", "id")`,
    );
    this.addSql(
      `alter table "pet_tag" add constraint "pet_tag_pet_id_tag_id_unique" unique ("pet_id", "tag_id")`,
    );
    this.addSql(
      `create table "visit" ("id" bigserial primary key, "pet_id" bigint not null, "owner_id" bigint not null, "at" timestamptz not null, "reason" text not null, "note" text null, "state" text not null, "version" int not null default 1)`,
    );
    this.addSql(`create index "visit_at_id_index" on "visit" ("at", "id")`);
    this.addSql(
      `create index "visit_pet_id_id_index" on "visit" ("pet_id", "id")`,
    );
    this.addSql(
      `create index "visit_pet_id_at_id_index" on "visit" ("pet_id", "at", "id")`,
    );
    this.addSql(
      `create index "visit_owner_id_id_index" on "visit" ("owner_id", "id")`,
    );
    this.addSql(
      `create index "visit_owner_id_at_id_index" on "visit" ("owner_id", "at", "id")`,
    );
    this.addSql(
      `create index "visit_pet_id_owner_id_id_index" on "visit" ("pet_id", "owner_id", "id")`,
    );
    this.addSql(
      `create index "visit_pet_id_owner_id_at_id_index" on "visit" ("pet_id", "owner_id", "at", "id")`,
    );
    this.addSql(
      `create table "treatment" ("id" bigserial primary key, "visit_id" bigint not null, "name" text not null, "price" numeric(12,2) not null, "version" int not null default 1)`,
    );
    this.addSql(
      `create index "treatment_visit_id_id_index" on "treatment" ("visit_id", "id")`,
    );
    this.addSql(
      `alter table "pet_tag" add constraint "pet_tag_pet_id_foreign" foreign key ("pet_id") references "pet" ("id") on delete cascade`,
    );
    this.addSql(
      `alter table "pet_tag" add constraint "pet_tag_tag_id_foreign" foreign key ("tag_id") references "tag" ("id") on delete cascade`,
    );
    this.addSql(
      `alter table "visit" add constraint "visit_pet_id_foreign" foreign key ("pet_id") references "pet" ("id") on delete cascade`,
    );
    this.addSql(
      `alter table "visit" add constraint "visit_owner_id_foreign" foreign key ("owner_id") references "owner" ("id") on delete no action`,
    );
    this.addSql(
      `alter table "visit" add constraint "visit_state_check" check ("state" in ('planned', 'done', 'cancelled'))`,
    );
    this.addSql(
      `alter table "treatment" add constraint "treatment_visit_id_foreign" foreign key ("visit_id") references "visit" ("id") on delete cascade`,
    );
  }
}
