import { callersForAll } from '../../modules/diaries/callers.ts';
import { diariesModule } from '../../modules/diaries/diaries.module.ts';
import { describe, expect, test } from '../../support/jest.ts';
import { citusLayout } from '../../support/servers/citus-database.ts';
import { storeForAll } from '../../support/store.ts';
import { callTool } from './mcp.ts';

// Citus allows a foreign key between distributed tables only when both are
// distributed by it.
const describeHere = citusLayout ? describe.skip : describe;

describeHere('rows of callers', () => {
  const store = storeForAll({ MCP: 'true' }, undefined, {
    more: [diariesModule],
  });
  const callers = callersForAll(store);

  test('tools of assistants are requests of the same caller', async () => {
    const { bob, all, owners, ofAda } = callers;
    const call = async (key: string, name: string, args = {}) =>
      JSON.stringify(await callTool({ ...store, key }, name, args));
    expect(await call(bob, 'list_diaries')).not.toContain(owners[0]);
    expect(await call(bob, 'list_diaries')).toContain(owners[1]);
    const found = await call(bob, 'get_diary', { diaryId: `${ofAda.id}` });
    expect(found).toContain('NOT_FOUND');
    expect(await call(all, 'list_diaries')).toContain(owners[0]);
  });
});
