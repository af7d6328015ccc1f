import { Migration } from '@mikro-orm/migrations';

/** Named 2026_11_29_050000_add_change_reader. */
export class AddChangeReader extends Migration {
  override up(): void {
    this.addSql('alter table "change" add "reader" text null');
  }
}

/** Named 2026_11_29_050100_index_change_reader. */
export class IndexChangeReader extends Migration {
  override isTransactional() {
    return false;
  }

  override up(): void {
    for (const columns of ['id', 'item_id, id', 'actor, id']) {
      const name = `change_reader_${columns.replaceAll(', ', '_')}_index`;
      this.addSql(`drop index concurrently if exists ${name}`);
      this.addSql(
        `create index concurrently ${name} on "change" ("reader", ${columns}) where "reader" is not null`,
      );
    }
  }
}
