/** Makes a value when it is first asked for, and keeps it. */
export function once<Made>(make: () => Made) {
  let made: Made | undefined;
  return () => (made ??= make());
}
