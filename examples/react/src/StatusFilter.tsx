import type { PetStatus } from './generated/graphql.ts';

const statuses: Array<PetStatus | null> = [
  null,
  'available',
  'pending',
  'sold',
];

interface StatusFilterProps {
  status: PetStatus | null;
  onStatus(status: PetStatus | null): void;
}

export function StatusFilter({ status, onStatus }: StatusFilterProps) {
  return (
    <fieldset className="filter">
      <legend>Status</legend>
      {statuses.map((one) => (
        <label key={one}>
          <input
            type="radio"
            name="status"
            checked={one === status}
            onChange={() => onStatus(one)}
          />
          <span>{one ?? 'all'}</span>
        </label>
      ))}
    </fieldset>
  );
}
