import { isIPv6, SocketAddress } from 'node:net';

/**
 * The /64 network of an IPv6 address, because a client has all its addresses;
 * an IPv4 address itself, even if mapped.
 */
export function networkOf(address: string) {
  if (!isIPv6(address)) return address;
  const [withoutZone = ''] = address.split('%');
  const { address: canonical } = new SocketAddress({
    address: withoutZone,
    family: 'ipv6',
  });
  const mapped = /^::ffff:([\d.]+)$/.exec(canonical)?.[1];
  if (mapped) return mapped;
  const missing = 9 - canonical.split(':').length;
  return canonical
    .replace('::', `:${'0:'.repeat(missing)}`)
    .split(':')
    .slice(0, 4)
    .join(':');
}
