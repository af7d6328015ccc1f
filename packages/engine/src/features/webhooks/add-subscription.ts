import { Migration } from '@mikro-orm/migrations';

/** Named 2026_11_29_040000_add_subscription. */
export class AddSubscription extends Migration {
  override up(): void {
    this.addSql(`
      alter table "webhook"
        add column if not exists "subscription" text null,
        add column if not exists "arguments" jsonb null,
        add column if not exists "until" timestamptz null`);
    this.addSql(`
      create unique index "webhook_subscription_unique" on "webhook" ("subscription")`);
  }

  override down(): void {
    this.addSql(`
      alter table "webhook"
        drop "subscription", drop "arguments", drop "until"`);
  }
}
