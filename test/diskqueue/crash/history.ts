import { expect } from 'vitest';

/** A message that was put, and what has become of it; times are lengths of the disk's log. */
export interface PutRecord {
  readonly id: number;
  readonly data: Buffer;
  readonly calledAt: number;
  /** `put` resolved; it was promised that the message is on the disk. */
  settledAt?: number;
  durableAt?: number;
  /** `put` rejected: nobody may rely on anything. */
  rejectedAt?: number;
  /** `ack` was called; it was promised that this is on the disk. `empty` acknowledges everything. */
  ackedAt?: number;
  ackDurableAt?: number;
  /** It was not made durable, and the process has forgotten it. */
  isAckForgotten?: boolean;
}

/** What was promised about a queue, and when. */
export class History {
  readonly puts: PutRecord[] = [];
  readonly #now: () => number;
  readonly #savesPrefix: boolean;

  /** @param savesPrefix - whether only acknowledgements before the first message that has none are saved. */
  constructor(now: () => number, savesPrefix: boolean) {
    this.#now = now;
    this.#savesPrefix = savesPrefix;
  }

  /** A message that nobody else can have put: its number, and bytes that follow from it. */
  put(length: number): PutRecord {
    const id = this.puts.length;
    const record = { id, data: messageOf(id, length), calledAt: this.#now() };
    this.puts.push(record);
    return record;
  }

  /** @returns what to call when the barrier has resolved. */
  barrier(): () => void {
    const before = this.puts.filter(({ rejectedAt }) => rejectedAt === undefined);
    const isAcked = ({ ackedAt, isAckForgotten }: PutRecord): boolean =>
      ackedAt !== undefined && isAckForgotten !== true;
    const end = this.#savesPrefix ? before.findIndex((put) => !isAcked(put)) : -1;
    const acked = before.slice(0, end < 0 ? undefined : end).filter(isAcked);
    return () => {
      for (const put of before) if (put.rejectedAt === undefined) put.durableAt ??= this.#now();
      for (const put of acked) put.ackDurableAt ??= this.#now();
    };
  }

  acked(id: number): void {
    const put = this.puts[id] as PutRecord;
    put.ackedAt ??= this.#now();
    put.isAckForgotten = false;
  }

  /** The queue was closed, or `close` or `empty` was rejected. */
  forgetAcks(): void {
    for (const put of this.puts) {
      if (put.ackedAt !== undefined && put.ackDurableAt === undefined) put.isAckForgotten = true;
    }
  }

  /** @returns what to call when it has resolved. */
  emptied(): () => void {
    for (const { id } of this.puts) this.acked(id);
    const before = [...this.puts];
    return () => {
      for (const put of before) put.ackDurableAt ??= this.#now();
    };
  }

  /** That what is delivered after a crash at that moment is what was promised, in order, and nothing else. */
  check(delivered: readonly Uint8Array[], crashedAt: number): void {
    const ids = delivered.map((data) => this.idOf(data));
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
    for (const put of this.puts) {
      const isThere = ids.includes(put.id);
      if (isPromised(put, crashedAt)) expect(isThere, `message ${put.id} is lost`).toBe(true);
      if (isGone(put, crashedAt)) expect(isThere, `message ${put.id} came back`).toBe(false);
    }
  }

  /** That nothing has crashed: everything that was settled is there, and nothing that was refused. */
  checkAll(delivered: readonly Uint8Array[]): void {
    const ids = delivered.map((data) => this.idOf(data));
    const maybe = this.puts.filter(
      ({ ackedAt, ackDurableAt }) => ackedAt !== undefined && ackDurableAt === undefined,
    );
    const sure = this.puts.filter(
      ({ settledAt, ackedAt }) => settledAt !== undefined && ackedAt === undefined,
    );
    expect(ids.filter((id) => !maybe.some((put) => put.id === id))).toEqual(sure.map(({ id }) => id));
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
  }

  /** Which message it is; its bytes are right. */
  idOf(data: Uint8Array): number {
    const id = data.length < 4 ? -1 : Buffer.from(data).readUInt32LE(0);
    const put = this.puts[id];
    const isRight = put?.data.equals(data) === true;
    expect(isRight, `${data.length} bytes that nobody has put, of message ${id} perhaps`).toBe(true);
    return id;
  }
}

function isPromised({ durableAt, ackedAt }: PutRecord, crashedAt: number): boolean {
  return (durableAt ?? Infinity) <= crashedAt && (ackedAt ?? Infinity) >= crashedAt;
}

function isGone({ calledAt, ackDurableAt }: PutRecord, crashedAt: number): boolean {
  return (ackDurableAt ?? Infinity) <= crashedAt || calledAt >= crashedAt;
}

const LEAST_LENGTH = 4;

export function messageOf(id: number, length: number): Buffer {
  const data = Buffer.alloc(Math.max(length, LEAST_LENGTH));
  for (let i = LEAST_LENGTH; i < data.length; i++) data[i] = (id * 31 + i * 7 + (i >> 8)) & 0xff;
  data.writeUInt32LE(id, 0);
  return data;
}
