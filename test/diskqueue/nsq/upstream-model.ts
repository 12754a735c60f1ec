import * as fs from 'node:fs';

export interface UpstreamOptions {
  readonly maxBytesPerFile: number;
  readonly minMessageSize: number;
  readonly maxMessageSize: number;
  readonly syncEvery: number;
}

/** The defaults: it saves its metadata at every turn. */
const UPSTREAM_DEFAULTS: UpstreamOptions = {
  maxBytesPerFile: 140,
  minMessageSize: 0,
  maxMessageSize: 1024,
  syncEvery: 1,
};

/** A loop that goes on like this never ends. */
const ENDLESS = 1000;

/**
 * What go-diskqueue does, step by step, with all that it loses: written from a description of its behaviour, not from
 * its source, and checked by nothing but the examples in it. Where the original can be had, `npm run test:interop` runs
 * the same tests against it.
 *
 * Each call is one turn of its loop. It has a clock no more than a lock: nothing is saved by time.
 */
export class UpstreamModel {
  readonly #folder: string;
  readonly #name: string;
  readonly #options: UpstreamOptions;
  #depth = 0;
  #readNumber = 0;
  #readOffset = 0;
  #writeNumber = 0;
  #writeOffset = 0;
  #nextNumber = 0;
  #nextOffset = 0;
  #head: Buffer | undefined;
  /** Of the file that is open for reading; undefined if none is. */
  #readLimit: number | undefined;
  #writer: number | undefined;
  #needsSync = false;
  #count = 0;

  constructor(folder: string, name: string, options: Partial<UpstreamOptions> = {}) {
    this.#folder = folder;
    this.#name = name;
    this.#options = { ...UPSTREAM_DEFAULTS, ...options };
    this.#load();
    this.#turn();
  }

  get depth(): number {
    return this.#depth;
  }

  put(message: Uint8Array): void {
    this.#count++;
    this.#write(message);
    this.#turn();
  }

  /** The next message, which is gone then. */
  receive(): Buffer | undefined {
    const head = this.#head;
    if (head === undefined) return undefined;
    this.#count++;
    this.#moveForward();
    this.#turn();
    return head;
  }

  empty(): void {
    this.#skipToNextFile();
    fs.rmSync(this.#metadataPath, { force: true });
    this.#count = 0;
    this.#turn();
  }

  close(): void {
    this.kill();
    this.#save();
  }

  /** What it has not saved is not saved. */
  kill(): void {
    this.#closeWriter();
  }

  #turn(): void {
    for (let i = 0; i < ENDLESS; i++) {
      if (this.#count === this.#options.syncEvery) this.#needsSync = true;
      if (this.#needsSync) this.#sync();
      const isReadable = this.#readNumber < this.#writeNumber || this.#readOffset < this.#writeOffset;
      if (!isReadable) {
        this.#head = undefined;
        return;
      }
      if (this.#nextOffset !== this.#readOffset) return;
      try {
        this.#head = this.#readOne();
        return;
      } catch {
        this.#handleReadError();
      }
    }
    throw new Error('endless');
  }

  #write(message: Uint8Array): void {
    const { minMessageSize, maxMessageSize, maxBytesPerFile } = this.#options;
    if (message.length < minMessageSize || message.length > maxMessageSize) throw new Error('invalid size');
    if (this.#writeOffset > 0 && this.#writeOffset + 4 + message.length > maxBytesPerFile) {
      if (this.#readNumber === this.#writeNumber && this.#readLimit !== undefined)
        this.#readLimit = this.#writeOffset;
      this.#writeNumber++;
      this.#writeOffset = 0;
      this.#sync();
      this.#closeWriter();
    }
    const path = this.#path(this.#writeNumber);
    this.#writer ??= fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
    const record = Buffer.alloc(4 + message.length);
    record.writeInt32BE(message.length);
    record.set(message, 4);
    fs.writeSync(this.#writer, record, 0, record.length, this.#writeOffset);
    this.#writeOffset += record.length;
    this.#depth++;
  }

  #readOne(): Buffer {
    const { minMessageSize, maxMessageSize, maxBytesPerFile } = this.#options;
    const bytes = fs.readFileSync(this.#path(this.#readNumber));
    const isComplete = this.#readNumber < this.#writeNumber;
    this.#readLimit ??= isComplete ? bytes.length : maxBytesPerFile;
    if (this.#readOffset + 4 > bytes.length) throw new Error('EOF');
    const length = bytes.readInt32BE(this.#readOffset);
    if (length < minMessageSize || length > maxMessageSize) throw new Error('invalid message read size');
    const end = this.#readOffset + 4 + length;
    if (end > bytes.length) throw new Error('unexpected EOF');
    this.#nextNumber = this.#readNumber;
    this.#nextOffset = end;
    if (isComplete && end >= this.#readLimit) {
      this.#readLimit = undefined;
      this.#nextNumber++;
      this.#nextOffset = 0;
    }
    return bytes.subarray(end - length, end);
  }

  #moveForward(): void {
    const old = this.#readNumber;
    this.#readNumber = this.#nextNumber;
    this.#readOffset = this.#nextOffset;
    this.#depth--;
    if (old !== this.#nextNumber) {
      this.#needsSync = true;
      fs.rmSync(this.#path(old), { force: true });
    }
    this.#checkTail();
  }

  #checkTail(): void {
    if (this.#readNumber < this.#writeNumber || this.#readOffset < this.#writeOffset) return;
    if (this.#depth !== 0) {
      this.#depth = 0;
      this.#needsSync = true;
    }
    if (this.#readNumber === this.#writeNumber && this.#readOffset === this.#writeOffset) return;
    this.#skipToNextFile();
    this.#needsSync = true;
  }

  #handleReadError(): void {
    if (this.#readNumber === this.#writeNumber) {
      this.#closeWriter();
      this.#writeNumber++;
      this.#writeOffset = 0;
    }
    const path = this.#path(this.#readNumber);
    if (fs.existsSync(path)) fs.renameSync(path, `${path}.bad`);
    this.#readLimit = undefined;
    this.#readNumber++;
    this.#readOffset = 0;
    this.#nextNumber = this.#readNumber;
    this.#nextOffset = 0;
    this.#needsSync = true;
    this.#checkTail();
  }

  #skipToNextFile(): void {
    this.#closeWriter();
    for (let n = this.#readNumber; n <= this.#writeNumber; n++) fs.rmSync(this.#path(n), { force: true });
    this.#readLimit = undefined;
    this.#writeNumber++;
    this.#writeOffset = 0;
    this.#readNumber = this.#nextNumber = this.#writeNumber;
    this.#readOffset = this.#nextOffset = 0;
    this.#depth = 0;
  }

  #sync(): void {
    this.#save();
    this.#needsSync = false;
    this.#count = 0;
  }

  #save(): void {
    const temporary = `${this.#metadataPath}.${Math.floor(Math.random() * 1e9)}.tmp`;
    const [read, write] = [
      `${this.#readNumber},${this.#readOffset}`,
      `${this.#writeNumber},${this.#writeOffset}`,
    ];
    fs.writeFileSync(temporary, `${this.#depth}\n${read}\n${write}\n`, { mode: 0o600 });
    fs.renameSync(temporary, this.#metadataPath);
  }

  #load(): void {
    if (!fs.existsSync(this.#metadataPath)) return;
    const text = fs.readFileSync(this.#metadataPath, 'latin1');
    const [depth = 0, ...rest] = (/^(-?\d+)(?:\n(\d+)(?:,(\d+)(?:\n(\d+)(?:,(\d+))?)?)?)?/.exec(text) ?? [])
      .slice(1)
      .map((digits) => Number(digits));
    const [readNumber, readOffset, writeNumber, writeOffset] = rest.map((n) => (Number.isNaN(n) ? 0 : n));
    this.#depth = depth;
    this.#readNumber = this.#nextNumber = readNumber ?? 0;
    this.#readOffset = this.#nextOffset = readOffset ?? 0;
    this.#writeNumber = writeNumber ?? 0;
    this.#writeOffset = writeOffset ?? 0;
    const path = this.#path(this.#writeNumber);
    if (!fs.existsSync(path) || fs.statSync(path).size <= this.#writeOffset) return;
    this.#writeNumber++;
    this.#writeOffset = 0;
  }

  #closeWriter(): void {
    if (this.#writer !== undefined) fs.closeSync(this.#writer);
    this.#writer = undefined;
  }

  get #metadataPath(): string {
    return `${this.#folder}/${this.#name}.diskqueue.meta.dat`;
  }

  #path(number: number): string {
    return `${this.#folder}/${this.#name}.diskqueue.${String(number).padStart(6, '0')}.dat`;
  }
}

/** Of the queue `q` in a folder. */
export function upstream(
  { path }: { readonly path: string },
  syncEvery = 1,
  minMessageSize = 0,
): UpstreamModel {
  return new UpstreamModel(path, 'q', { syncEvery, minMessageSize });
}

export function receiveAll(queue: UpstreamModel): string[] {
  const all: string[] = [];
  for (let head = queue.receive(); head !== undefined; head = queue.receive()) {
    all.push(head.toString('latin1'));
  }
  return all;
}
