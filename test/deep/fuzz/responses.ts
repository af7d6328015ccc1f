import type { HttpResponse } from '../../support/http.ts';

/** Reads what a server has written to a connection. @throws Error when that is not a row of HTTP/1.1 responses */
export function responsesIn(bytes: Buffer): HttpResponse[] {
  const responses: HttpResponse[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const end = rest.indexOf('\r\n\r\n');
    const [line = '', ...fields] = rest.subarray(0, Math.max(end, 0)).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]);
    if (!status) throw new Error(`not an HTTP response: ${JSON.stringify(rest.subarray(0, 200).toString('latin1'))}`);
    const headers = Object.fromEntries(fields.map(pair));
    const body = rest.subarray(end + 4);
    // A response to HEAD, which only a changed byte can make, announces a body that does not follow.
    const isHead = body.length === 0 || body.subarray(0, 5).toString('latin1') === 'HTTP/';
    const length = isHead || status < 200 ? 0 : Number(headers['content-length'] ?? (status === 204 ? 0 : body.length));
    if (length > body.length) throw new Error(`cut short: ${line} ${body.toString('utf8', 0, 300)}`);
    if (status >= 200) responses.push({ status, headers, text: body.toString('utf8', 0, length) });
    rest = body.subarray(length);
  }
  return responses;
}

function pair(field: string): [string, string] {
  const [, name = '', value = ''] = /^([^:]+):\s*(.*)$/.exec(field) ?? [];
  return [name.toLowerCase(), value];
}
