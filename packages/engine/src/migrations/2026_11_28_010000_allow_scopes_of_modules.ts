import { Migration } from '@mikro-orm/migrations';

export class AllowScopesOfModules extends Migration {
  override up(): void {
    this.addSql('alter table "api_key" drop constraint "api_key_scope_check"');
  }
}
