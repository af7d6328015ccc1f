/** An operation to try in the explorers. */
export interface Example {
  /** What it does, in a few words. */
  title: string;
  /** One named operation. Its variables have names that no other example uses: Sandbox shows all in one document. */
  document: string;
  variables?: Record<string, unknown>;
}
