import { Migration } from '@mikro-orm/migrations';

/** Named 2026_11_29_030000_add_subscription. */
export class AddSubscription extends Migration {
  override up(): void {
    this.addSql(`
      alter table "webhook"
        add "subscription" text null,
        add "arguments" jsonb null,
        add "until" timestamptz null`);
  }
}
