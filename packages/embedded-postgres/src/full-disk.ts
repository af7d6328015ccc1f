/** The error message when the disk of the data folder is full. */
export function fullDisk(folder: string): string {
  return `The disk of ${folder} (DATA_DIR) is full. Make room and start again: what was acknowledged is there.`;
}
