import { Migration } from '@mikro-orm/migrations';

/** Named 2026_11_29_040000_unique_subscription. */
export class UniqueSubscription extends Migration {
  override up(): void {
    // The release before may have added one twice.
    this.addSql(`
      delete from "webhook" using "webhook" as other
      where "webhook".subscription = other.subscription and "webhook".id > other.id`);
    this.addSql(`
      create unique index "webhook_subscription_unique" on "webhook" ("subscription")`);
  }
}
