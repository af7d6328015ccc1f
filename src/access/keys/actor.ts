import { hostname, userInfo } from 'node:os';

/** Who changes keys, as far as the operating system knows. */
export interface Actor {
  /** The name of the operating system's user; its number where it has no name, in a container for instance. */
  user: string;
  /** Who has become that user with sudo. That user could have set it to anything. */
  sudoUser: string | null;
  host: string;
  /** Like `keys issue`; `start` for the service itself. */
  command: string;
}

export function actorOf(command: string, sudoUser?: string): Actor {
  return { user: userName(), sudoUser: sudoUser || null, host: hostname(), command };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `${process.getuid?.()}`;
  }
}
