import { Migration } from '@mikro-orm/migrations';

export class CreatePractice extends Migration {
  override up(): void {
    this.addSql(
      `create table "customer" ("id" bigserial primary key, "name" text not null, "email" text not null, "phone" text null, "clinic" text not null, "version" int not null default 1);`,
    );
    this.addSql(
      `create unique index "customer_clinic_id_index" on "customer" ("clinic", "id");`,
    );
    this.addSql(
      `alter table "customer" add constraint "customer_clinic_email_unique" unique ("clinic", "email");`,
    );

    this.addSql(
      `create table "animal" ("id" bigserial primary key, "customer_id" bigint not null, "name" text not null, "chip" bigint not null, "clinic" text not null, "version" int not null default 1);`,
    );
    this.addSql(
      `create unique index "animal_clinic_id_index" on "animal" ("clinic", "id");`,
    );
    this.addSql(
      `create index "animal_customer_id_id_index" on "animal" ("customer_id", "id");`,
    );

    this.addSql(
      `create table "note" ("id" bigserial primary key, "text" text not null, "writer" text not null, "version" int not null default 1);`,
    );
    this.addSql(
      `create index "note_writer_id_index" on "note" ("writer", "id");`,
    );

    this.addSql(
      `create table "visit" ("id" bigserial primary key, "animal_id" bigint not null, "at" timestamptz(3) not null, "reason" text not null, "clinic" text not null, "version" int not null default 1);`,
    );
    this.addSql(
      `create index "visit_animal_id_id_index" on "visit" ("animal_id", "id");`,
    );
    this.addSql(`create index "visit_at_id_index" on "visit" ("at", "id");`);
    this.addSql(
      `create index "visit_animal_id_at_id_index" on "visit" ("animal_id", "at", "id");`,
    );
    this.addSql(
      `create unique index "visit_clinic_id_index" on "visit" ("clinic", "id");`,
    );
    this.addSql(
      `create index "visit_clinic_at_id_index" on "visit" ("clinic", "at", "id");`,
    );

    this.addSql(
      `create table "treatment" ("id" bigserial primary key, "visit_id" bigint not null, "name" text not null, "price" numeric(12,2) not null, "clinic" text not null, "version" int not null default 1);`,
    );
    this.addSql(
      `create index "treatment_clinic_id_index" on "treatment" ("clinic", "id");`,
    );
    this.addSql(
      `create index "treatment_visit_id_id_index" on "treatment" ("visit_id", "id");`,
    );

    this.addSql(
      `alter table "animal" add constraint "animal_customer_id_foreign" foreign key ("clinic", "customer_id") references "customer" ("clinic", "id");`,
    );

    this.addSql(
      `alter table "visit" add constraint "visit_animal_id_foreign" foreign key ("clinic", "animal_id") references "animal" ("clinic", "id");`,
    );

    this.addSql(
      `alter table "treatment" add constraint "treatment_visit_id_foreign" foreign key ("clinic", "visit_id") references "visit" ("clinic", "id");`,
    );
  }
}
