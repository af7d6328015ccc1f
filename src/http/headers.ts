/** Security headers. */

const common = {
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
};

/** For JSON: the browser must not run, frame or sniff it. */
export const dataHeaders = { 'content-security-policy': "default-src 'none';frame-ancestors 'none'", ...common };

/** For pages whose own `<meta>` element says what they may load; only framing cannot be forbidden there. */
export const pageHeaders = {
  ...common,
  'content-security-policy': "frame-ancestors 'none'",
  'origin-agent-cluster': '?1',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'SAMEORIGIN',
  'x-permitted-cross-domain-policies': 'none',
  'x-xss-protection': '0',
};
