/** Security headers of every response. */
export const securityHeaders = {
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
};

/** For JSON: browsers must not run, frame or sniff it, and not store it unless `caching` allows it. */
export const dataHeaders = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'cache-control': 'no-store',
  ...securityHeaders,
};
