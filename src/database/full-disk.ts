/** What is said of a data folder where nothing more can be written. */
export function fullDisk(folder: string): string {
  return `The disk of ${folder} (DATA_DIR) is full. Make room and start again: what was acknowledged is there.`;
}
