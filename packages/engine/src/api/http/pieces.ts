import type { IncomingMessage } from 'node:http';

/** A chunk of a few bytes costs as much as one of thousands. */
export const smallPiece = 16;
const fewPieces = 1000;

export function areTiny(pieces: number, bytes: number) {
  return pieces > fewPieces && bytes < smallPiece * pieces;
}

/**
 * Drops the chunks after the one by which the body is refused, when they
 * arrive: Node would keep an object for each until the body is read.
 */
export function boundPieces(raw: IncomingMessage) {
  const { push } = raw;
  let pieces = 0;
  let bytes = 0;
  raw.push = (chunk: Buffer | null) => {
    // Node stops reading the connection.
    if (chunk && areTiny(pieces, bytes)) return false;
    pieces += 1;
    bytes += chunk?.length ?? 0;
    return push.call(raw, chunk);
  };
}
