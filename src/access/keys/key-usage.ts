import type { Database } from '../../storage/database/database.ts';
import { Gathered } from '../../storage/database/gathered.ts';
import type { Statement } from '../../storage/records/statement.ts';

const touchKeys: Statement = {
  name: 'touch_keys',
  text: `
    update api_key set last_used_at = greatest(last_used_at, used.at)
    from unnest($1::int[], $2::timestamptz[]) as used (id, at) where api_key.id = used.id`,
};

interface Use {
  keyId: number;
  at: Date;
}

/** Records when keys were last used. */
export class KeyUsage {
  readonly #uses: Gathered<Use>;

  constructor(database: Database) {
    this.#uses = new Gathered<Use>(
      (uses) => database.rows(touchKeys, [uses.map(({ keyId }) => keyId), uses.map(({ at }) => at)]),
      (_earlier, later) => later,
    );
  }

  /** Records that a stored key was used just now. */
  used(keyId: number): void {
    this.#uses.add(`${keyId}`, { keyId, at: new Date() });
  }

  /** Writes the collected uses. @throws the database's error; the uses are kept */
  flush(): Promise<void> {
    return this.#uses.flush();
  }
}
