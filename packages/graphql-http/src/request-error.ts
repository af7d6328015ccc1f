/** A request that is refused before there is a document. */
export class RequestError extends Error {
  override readonly name = 'RequestError';

  /** @param isUnprocessable true for JSON that is not a GraphQL over HTTP request: 422 rather than 400 */
  constructor(
    readonly code:
      | 'BAD_USER_INPUT'
      | 'UNSUPPORTED_MEDIA_TYPE'
      | 'PERSISTED_QUERY_NOT_SUPPORTED'
      | 'OPERATION_NOT_TRUSTED',
    message: string,
    readonly isUnprocessable = false,
  ) {
    super(message);
  }
}
