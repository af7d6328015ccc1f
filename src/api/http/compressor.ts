import { promisify } from 'node:util';
import zlib, { constants } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import Negotiator from 'negotiator';

/** Makes a text smaller: at once, or in another thread. */
interface Coding {
  now(content: string | Buffer): Buffer;
  later(content: string | Buffer): Promise<Buffer>;
}

const zstd = { params: { [constants.ZSTD_c_compressionLevel]: 3 } };
const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };
const gzip = { level: 6 };

/** Preferred first, where the client has no preference. The levels are those after which time grows faster than size shrinks. */
const codings: Record<string, Coding> = {
  zstd: {
    now: (content) => zlib.zstdCompressSync(content, zstd),
    later: (content) => promisify(zlib.zstdCompress)(content, zstd),
  },
  br: {
    now: (content) => zlib.brotliCompressSync(content, brotli),
    later: (content) => promisify(zlib.brotliCompress)(content, brotli),
  },
  gzip: {
    now: (content) => zlib.gzipSync(content, gzip),
    later: (content) => promisify(zlib.gzip)(content, gzip),
  },
};

/** Since negotiator 1.0; its types are those of 0.6. */
interface Preferring {
  encodings(offered: string[], options: { preferred: string[] }): string[];
}

export const codingNames = Object.keys(codings);
const offered = [...codingNames, 'identity'];

/** In characters. Thousands of codings would take a millisecond to read. */
const longestHeader = 256;
/** In bytes. What is smaller fits into one packet anyway. */
const worthIt = 1024;
/** In bytes. Above, other requests would notice: compressing takes a millisecond for every 100 kB or so. */
const atOnce = 65_536;
/** In bytes. */
const largestKept = 2_097_152;
/** In bytes, roughly: of an entry that is kept, beside its content. */
const overhead = 500;

/**
 * Compresses answers. The same text is compressed once for all who ask for it at a time or shortly after: what is kept
 * goes by its content, so it is never stale.
 */
export class Compressor {
  /** By header: clients send few different ones, and reading one takes longer than all else that is done here. */
  readonly #accepted = new LRUCache<string, string[]>({ max: 100 });
  /** By coding and content. */
  readonly #known = new LRUCache<string, Buffer>({ maxSize: 8_388_608 });
  /** What is being compressed in other threads: as much as answers under way hold. */
  readonly #pending = new Map<string, Promise<Buffer>>();

  /**
   * Chooses among zstd, br and gzip (RFC 9110 section 12.5.3).
   *
   * @param acceptEncoding the header; one that is longer than any browser's is taken for none
   * @param bytes length of the text
   * @returns undefined when it is to be sent as it is
   */
  codingFor(acceptEncoding: string, bytes: number): string | undefined {
    if (bytes === 0) return undefined;
    const accepted = this.#acceptedIn(acceptEncoding);
    const [coding] = accepted;
    const isSmall = bytes < worthIt && accepted.includes('identity');
    return coding === 'identity' || isSmall ? undefined : coding;
  }

  /** Best first. */
  #acceptedIn(header: string): string[] {
    if (header.length > longestHeader) return ['identity'];
    const known = this.#accepted.get(header);
    if (known) return known;
    const negotiator = new Negotiator({ headers: { 'accept-encoding': header } }) as unknown as Preferring;
    const accepted = negotiator.encodings(offered, { preferred: offered });
    this.#accepted.set(header, accepted);
    return accepted;
  }

  /** @param tag of the content */
  compress(content: string | Buffer, tag: string, name: string): Buffer | Promise<Buffer> {
    const key = `${name} ${tag}`;
    const known = this.#known.get(key) ?? this.#pending.get(key);
    if (known) return known;
    const coding = codings[name] as Coding;
    if (Buffer.byteLength(content) <= atOnce) return this.#kept(key, coding.now(content));
    const keep = (bytes: Buffer) => this.#kept(key, bytes);
    const pending = coding
      .later(content)
      .then(keep)
      .finally(() => this.#pending.delete(key));
    this.#pending.set(key, pending);
    return pending;
  }

  #kept(key: string, bytes: Buffer): Buffer {
    if (bytes.length > largestKept) return bytes;
    // What zlib returns is a small part of a buffer of 16 KiB or more, all of which would be kept.
    const own = Buffer.allocUnsafeSlow(bytes.length);
    bytes.copy(own);
    this.#known.set(key, own, { size: own.length + overhead });
    return own;
  }
}
