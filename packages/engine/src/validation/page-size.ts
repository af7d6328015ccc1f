import { reportFault } from '../errors.ts';

/** How many items a page may hold. */
export const pageLimit = { min: 1, max: 100, default: 20, nested: 5 } as const;
/** The most that a collection may declare. */
export const longestPage = 1000;
/**
 * In characters: up to 16 MiB, because JSON writes one as six bytes at most. No
 * later code counts bytes.
 */
export const maxPageLength = 2_796_200;

/**
 * @param members of an item
 * @param most items of a page
 * @param page of what
 * @throws Error when a page could have too many bytes
 */
export function assertPageFits(
  members: ReadonlyArray<{ name: string; maxLength?: number | undefined }>,
  most: number = pageLimit.max,
  page = 'A page',
) {
  const texts = members.filter(({ maxLength }) => maxLength);
  const names = texts.map(({ name }) => name).join(' and ');
  const longest = Math.floor(maxPageLength / most);
  let length = 0;
  for (const { maxLength = 0 } of texts) length += maxLength;
  if (length > longest)
    reportFault(
      `${page} could exceed 16 MiB: ${names} have up to ${length} characters in all; at most ${longest} are allowed.`,
    );
}
