import type { PetRowFragment } from './generated/graphql.ts';
import { graphql } from './generated/index.ts';

/**
 * The fields of this row, for queries that list animals.
 *
 * @public code generation reads it
 */
export const PetRowFields = graphql(`
  fragment PetRow on Pet {
    id
    name
    categoryId
    status
  }
`);

export function PetRow({
  pet: { id, name, categoryId, status },
}: {
  pet: PetRowFragment;
}) {
  return (
    <li>
      <strong>{name}</strong>
      <span className={`status ${status}`}>{status}</span>
      <small>
        id {id} · category {categoryId}
      </small>
    </li>
  );
}
