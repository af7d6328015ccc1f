/**
 * A message of PostgreSQL's protocol; the first message of a session has no
 * type.
 */
export function message(
  type: string,
  ...parts: Array<string | number[]>
): Buffer {
  const body = Buffer.concat(
    parts.map((part) =>
      typeof part === 'string' ? Buffer.from(`${part}\0`) : Buffer.from(part),
    ),
  );
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

/** The first message of a session. */
export const startup = message(
  '',
  [0, 3, 0, 0],
  ...['user', 'postgres', 'database', 'postgres'],
  [0],
);
