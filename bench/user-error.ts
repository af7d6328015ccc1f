/** An error that is printed without a stack. Its message is one line. */
export class UserError extends Error {}
