import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CorruptionEvent, StoredMessage } from '../../../src/diskqueue/message-log.ts';
import { NsqLog } from '../../../src/diskqueue/nsq/nsq-log.ts';
import { CrashDisk } from './crash-disk.ts';
import { propertyRuns, timeoutOf } from '../../runs.ts';

/** What can be done with a log, and how it ends: closed, or with its process. */
type Action =
  | { readonly kind: 'put'; readonly lengths: readonly number[] }
  | { readonly kind: 'append'; readonly lengths: readonly number[] }
  | { readonly kind: 'acknowledge'; readonly picks: readonly number[] }
  | { readonly kind: 'saveAcks'; readonly isDurable: boolean }
  | { readonly kind: 'reopen'; readonly maxBytesPerFile: number }
  | { readonly kind: 'read' | 'sync' | 'empty' | 'kill' };

const lengths = fc.array(fc.oneof(fc.nat(12), fc.constantFrom(0, 56, 60, 96, 200)), { maxLength: 8 });

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('put' as const), lengths }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('append' as const), lengths }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('acknowledge' as const), picks: fc.array(fc.nat()) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('saveAcks' as const), isDurable: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('reopen' as const),
      maxBytesPerFile: fc.integer({ min: 1, max: 200 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('read' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('sync' as const, 'kill' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('empty' as const) }) },
);

/** A log, and beside it a list that does the same. */
class Pair {
  readonly #isAlwaysDurable: boolean;
  readonly #damages: CorruptionEvent[] = [];
  #disk = new CrashDisk();
  #log: NsqLog | undefined;
  #maxBytesPerFile = 64;
  /** All messages that are not before the read position, and whether they are acknowledged. */
  #list: { readonly text: string; isAcked: boolean }[] = [];
  /** How many of them were handed out, and which of those are held. */
  #readTo = 0;
  #held: { readonly message: StoredMessage; readonly entry: { isAcked: boolean } }[] = [];
  /** Appended, and not readable yet. */
  #pending: string[] = [];
  /** How many of the list's first may come again, because nothing has saved that they are acknowledged. */
  #count = 0;

  constructor(isAlwaysDurable: boolean) {
    this.#isAlwaysDurable = isAlwaysDurable;
  }

  async run(action: Action): Promise<void> {
    switch (action.kind) {
      case 'put':
        await this.#append(action.lengths);
        return this.#sync();
      case 'append':
        return this.#append(action.lengths);
      case 'sync':
        return this.#sync();
      case 'read':
        return this.#read();
      case 'acknowledge':
        return this.#acknowledge(action.picks);
      case 'saveAcks':
        return (await this.#open()).saveAcks(action.isDurable);
      case 'empty':
        return this.#empty();
      case 'reopen':
        return this.#reopen(action.maxBytesPerFile);
      case 'kill':
        return this.#kill();
    }
  }

  async check(): Promise<void> {
    const log = await this.#open();
    const left = this.#list.filter(({ isAcked }) => !isAcked);
    expect(this.#damages).toEqual([]);
    expect(log.depth).toBe(left.length);
    expect(log.bytes).toBe(left.reduce((sum, { text }) => sum + text.length, 0));
  }

  async #open(): Promise<NsqLog> {
    this.#log ??= await NsqLog.open({
      files: this.#disk,
      folder: '/q',
      name: 'q',
      maxBytesPerFile: this.#maxBytesPerFile,
      maxMessageSize: 256,
      isAlwaysDurable: this.#isAlwaysDurable,
      onCorruption: (event) => this.#damages.push(event),
    });
    return this.#log;
  }

  async #append(sizes: readonly number[]): Promise<void> {
    const list = sizes.map((length) => `${this.#count++};`.padEnd(length, 'x').slice(0, length));
    for (let left = list; left.length > 0;) {
      if (this.#pending.length > 0) await this.#sync();
      const log = await this.#open();
      const { appended, error } = await log.append(left.map((text) => Buffer.from(text)));
      expect([appended > 0, error]).toEqual([true, undefined]);
      this.#pending.push(...left.slice(0, appended));
      left = left.slice(appended);
      if (!this.#isAlwaysDurable) this.#publish();
    }
  }

  #publish(): void {
    for (const text of this.#pending.splice(0)) this.#list.push({ text, isAcked: false });
  }

  async #sync(): Promise<void> {
    await (await this.#open()).sync();
    this.#publish();
  }

  async #read(): Promise<void> {
    for (const message of await (await this.#open()).read()) {
      const entry = this.#list[this.#readTo++] ?? { text: undefined, isAcked: false };
      expect(Buffer.from(message.data).toString()).toBe(entry.text);
      this.#held.push({ message, entry });
    }
  }

  async #acknowledge(picks: readonly number[]): Promise<void> {
    const log = await this.#open();
    for (const pick of picks) {
      const [one] = this.#held.splice(pick % Math.max(this.#held.length, 1), 1);
      if (one === undefined) return;
      one.entry.isAcked = true;
      log.acknowledge(one.message);
      log.acknowledge(one.message);
    }
  }

  async #empty(): Promise<void> {
    await (await this.#open()).empty();
    this.#list = [];
    this.#held = [];
    this.#pending = [];
    this.#readTo = 0;
  }

  async #reopen(maxBytesPerFile: number): Promise<void> {
    await (await this.#open()).close();
    this.#log = undefined;
    this.#publish();
    const first = this.#list.findIndex(({ isAcked }) => !isAcked);
    this.#restart(first < 0 ? this.#list.length : first);
    this.#maxBytesPerFile = maxBytesPerFile;
    await this.#open();
  }

  /** What was pending may be there; what was acknowledged may come again, in which case it was never saved. */
  async #kill(): Promise<void> {
    const all = [...this.#list.map(({ text }) => text), ...this.#pending];
    this.#disk = this.#disk.afterKill();
    this.#log = undefined;
    const log = await this.#open();
    const found = await this.#peekAll();
    const acked = this.#list.findIndex(({ isAcked }) => !isAcked);
    const first = [...Array(all.length + 1).keys()].find((from) => {
      const until = from + found.length;
      return until <= all.length && found.every((text, i) => text === all[from + i]);
    });
    if (first === undefined) expect(found).toEqual(all);
    expect(first ?? 0).toBeLessThanOrEqual(acked < 0 ? this.#list.length : acked);
    expect((first ?? 0) + found.length).toBeGreaterThanOrEqual(this.#list.length);
    expect(log.depth).toBe(found.length);
    this.#list = found.map((text) => ({ text, isAcked: false }));
    this.#pending = [];
    this.#restart(0);
  }

  /** What another process would find. */
  async #peekAll(): Promise<string[]> {
    const disk = this.#disk.afterKill();
    const log = await NsqLog.open({
      ...{
        files: disk,
        folder: '/q',
        name: 'q',
        maxBytesPerFile: this.#maxBytesPerFile,
        maxMessageSize: 256,
      },
      ...{ isAlwaysDurable: this.#isAlwaysDurable, onCorruption: (event) => this.#damages.push(event) },
    });
    const found: string[] = [];
    for (let some = await log.read(); some.length > 0; some = await log.read()) {
      found.push(...some.map(({ data }) => Buffer.from(data).toString()));
    }
    return found;
  }

  #restart(first: number): void {
    this.#list = this.#list.slice(first).map(({ text }) => ({ text, isAcked: false }));
    this.#held = [];
    this.#readTo = 0;
  }
}

describe.each([true, false])('a log, always durable: %s', (isAlwaysDurable) => {
  it(
    'a log does what a list does, through reopens, kills, and files of any size',
    { timeout: timeoutOf() },
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(action, { maxLength: 60 }), async (actions) => {
          const pair = new Pair(isAlwaysDurable);
          for (const one of actions) {
            await pair.run(one);
            await pair.check();
          }
        }),
        propertyRuns(),
      );
    },
  );
});
