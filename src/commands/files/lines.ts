const newline = 0x0a;

/**
 * The lines of some bytes, without their ends. A line ends with a line feed only: Node's readline would also end it at
 * U+2028, which a text may hold.
 *
 * @param longest how many bytes of a line are kept
 * @returns undefined for a line that is longer
 */
export async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  longest = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer | undefined> {
  let rest: Buffer[] = [];
  let size = 0;
  const keep = (piece: Buffer) => {
    size += piece.length;
    if (size > longest) rest = [];
    else rest.push(piece);
  };
  const take = () => {
    const line = size > longest ? undefined : rest.length === 1 ? rest[0] : Buffer.concat(rest);
    [rest, size] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      keep(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    if (start < chunk.length) keep(chunk.subarray(start));
  }
  if (size > 0) yield take();
}
