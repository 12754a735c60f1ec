import type { CorruptionEvent, StoredMessage } from '../../../src/diskqueue/message-log.ts';
import { NsqLog } from '../../../src/diskqueue/nsq/nsq-log.ts';
import { StoredNsqQueue } from '../../../src/diskqueue/nsq/stored-nsq-queue.ts';
import { isMadeByTest, type CrashDisk } from './crash-disk.ts';

/** A message, and what was promised about it. */
export interface TrackedMessage {
  readonly text: string;
  /**
   * `refused`: its put was rejected. `pending`: its put has not settled. `written`: it is with the host, and readable.
   * `unsafe`: the same, but it will never be on the disk for certain. `durable`: it is on the disk.
   */
  state: 'refused' | 'pending' | 'written' | 'unsafe' | 'durable';
  /** Whether it was acknowledged, and whether that was saved as part of the acknowledged prefix. */
  isAcked: boolean;
  isAckSaved: boolean;
  /** Whether an `empty` that failed may have dropped it. */
  isMaybeGone: boolean;
}

/** The owner of a log: puts, reads and acknowledges, goes on after errors, and remembers what was promised. */
export class Scenario {
  readonly disk: CrashDisk;
  readonly damages: CorruptionEvent[] = [];
  readonly tracked: TrackedMessage[] = [];
  readonly errors: unknown[] = [];
  readonly #isAlwaysDurable: boolean;
  #log: NsqLog | undefined;
  #held: StoredMessage[] = [];
  #next = 0;

  constructor(disk: CrashDisk, isAlwaysDurable: boolean) {
    this.disk = disk;
    this.#isAlwaysDurable = isAlwaysDurable;
  }

  async open(): Promise<void> {
    while (this.#log === undefined) {
      await this.#try(async () => {
        this.#log = await openLog(this.disk, this.#isAlwaysDurable, this.damages);
      });
    }
  }

  get log(): NsqLog {
    return this.#log as NsqLog;
  }

  /** Messages of these lengths, each with a text of its own if it is long enough. */
  async put(lengths: readonly number[], isSynced = true): Promise<void> {
    let left = lengths.map((length) => this.#newMessage(length));
    while (left.length > 0) {
      if (this.tracked.some(({ state }) => state === 'pending') && !(await this.#sync())) return;
      const { appended, error } = await this.log.append(left.map(({ text }) => Buffer.from(text)));
      for (const one of left.slice(0, appended)) one.state = this.#isAlwaysDurable ? 'pending' : 'written';
      left = left.slice(appended);
      if (error === undefined) continue;
      this.errors.push(error);
      break;
    }
    if (isSynced) await this.#sync();
  }

  async read(): Promise<void> {
    await this.#try(async () => {
      this.#held.push(...(await this.log.read()));
    });
  }

  /** @param pick - which of the messages that are held, by their place. */
  acknowledge(pick: (place: number) => boolean): void {
    const held = this.#held;
    this.#held = held.filter((_, i) => !pick(i));
    for (const message of held.filter((_, i) => pick(i))) {
      this.log.acknowledge(message);
      const text = Buffer.from(message.data).toString('latin1');
      const one = this.tracked.find((tracked) => tracked.text === text && !tracked.isAcked);
      if (one !== undefined) one.isAcked = true;
    }
  }

  async saveAcks(isDurable: boolean): Promise<void> {
    const acked = this.#ackedPrefix();
    const isSaved = await this.#try(() => this.log.saveAcks(isDurable));
    if (!isSaved || !isDurable) return;
    for (const one of acked) one.isAckSaved = true;
  }

  async empty(): Promise<void> {
    for (const one of this.tracked) one.isMaybeGone = true;
    this.#held = [];
    if (await this.#try(() => this.log.empty())) this.tracked.length = 0;
  }

  async close(): Promise<void> {
    const { log } = this;
    this.#log = undefined;
    this.#held = [];
    const isClosed = await this.#try(() => log.close());
    this.#settle(isClosed);
    if (!isClosed) return;
    for (const one of this.#ackedPrefix()) one.isAckSaved = true;
  }

  async #sync(): Promise<boolean> {
    const isDurable = await this.#try(() => this.log.sync());
    this.#settle(isDurable);
    return isDurable;
  }

  /** Records the outcome of a sync for everything that was appended. */
  #settle(isDurable: boolean): void {
    for (const one of this.tracked) {
      if (one.state === 'written') one.state = isDurable ? 'durable' : 'unsafe';
      if (one.state === 'pending') one.state = isDurable ? 'durable' : 'refused';
    }
  }

  #newMessage(length: number): TrackedMessage {
    const text = `${this.#next++}:`.padEnd(length, 'x').slice(0, length);
    const one: TrackedMessage = {
      text,
      state: 'refused',
      isAcked: false,
      isAckSaved: false,
      isMaybeGone: false,
    };
    this.tracked.push(one);
    return one;
  }

  #ackedPrefix(): TrackedMessage[] {
    const kept = this.tracked.filter(({ state }) => state !== 'refused');
    const end = kept.findIndex(({ isAcked }) => !isAcked);
    return end < 0 ? kept : kept.slice(0, end);
  }

  async #try(action: () => Promise<unknown>): Promise<boolean> {
    try {
      await action();
      return true;
    } catch (error) {
      if (!isMadeByTest(error)) throw error;
      this.errors.push(error);
      return false;
    }
  }
}

export function openLog(
  disk: CrashDisk,
  isAlwaysDurable: boolean,
  damages: CorruptionEvent[],
): Promise<NsqLog> {
  return NsqLog.open({
    files: disk,
    folder: '/q',
    name: 'q',
    maxBytesPerFile: 100,
    maxMessageSize: 300,
    isAlwaysDurable,
    onCorruption: (event) => damages.push(event),
  });
}

/** The same for every test: it rolls, empties, puts nothing and much, and leaves some of it unsaved. */
export async function runScenario(scenario: Scenario): Promise<void> {
  await scenario.open();
  await scenario.put([10]);
  await scenario.put([10, 11, 12, 13, 14, 15]);
  await scenario.read();
  scenario.acknowledge((place) => place !== 2);
  await scenario.saveAcks(true);
  await scenario.put([20, 250, 20]);
  await scenario.read();
  await scenario.read();
  scenario.acknowledge(() => true);
  await scenario.saveAcks(false);
  await scenario.put([30, 30], false);
  await scenario.put([0, 5, 0]);
  await scenario.saveAcks(true);
  await scenario.close();
  await scenario.open();
  await scenario.put([40, 40, 40]);
  await scenario.empty();
  await scenario.put([9, 9], false);
  await scenario.put([9]);
  await scenario.read();
  scenario.acknowledge((place) => place === 0);
  await scenario.saveAcks(true);
  for (let i = 0; i < 8; i++) await scenario.put([17]);
  await scenario.put([18], false);
  await scenario.read();
}

export interface Allowed {
  /** Whether a message whose put was rejected may be there all the same. */
  readonly refused: boolean;
  /** Whether what is only with the host may be missing. */
  readonly lostWritten: boolean;
}

/** Whether what was delivered is what was promised: nothing is missing, nothing is there twice, and all in its order. */
export function keepsPromises(
  tracked: readonly TrackedMessage[],
  delivered: readonly string[],
  { refused, lostWritten }: Allowed,
): boolean {
  const isNeeded = ({ state, isAcked, isMaybeGone }: TrackedMessage): boolean =>
    !isAcked &&
    !isMaybeGone &&
    (state === 'durable' || (!lostWritten && (state === 'written' || state === 'unsafe')));
  const isPossible = ({ state, isAckSaved }: TrackedMessage): boolean =>
    !isAckSaved && (refused || state !== 'refused');
  /** The numbers of delivered messages that can match the messages so far: several, because texts may be equal. */
  let ends = new Set([0]);
  for (const one of tracked) {
    const next = new Set(isNeeded(one) ? [] : ends);
    if (isPossible(one)) for (const end of ends) if (delivered[end] === one.text) next.add(end + 1);
    ends = next;
  }
  return ends.has(delivered.length);
}

/** Opens what is left, and looks whether it is what was promised and whether it can be used. */
export async function checkLeft(
  disk: CrashDisk,
  isAlwaysDurable: boolean,
  tracked: readonly TrackedMessage[],
  allowed: Allowed,
): Promise<string | undefined> {
  const damages: CorruptionEvent[] = [];
  const { problems } = await new StoredNsqQueue(disk, '/q', 'q').verify(() => undefined);
  if (problems.length > 0) return `problems: ${JSON.stringify(problems)}`;
  const log = await openLog(disk, isAlwaysDurable, damages);
  const { depth } = log;
  const delivered: string[] = [];
  for (let some = await log.read(); some.length > 0; some = await log.read()) {
    for (const message of some) {
      delivered.push(Buffer.from(message.data).toString('latin1'));
      log.acknowledge(message);
    }
  }
  if (log.depth !== 0 || log.bytes !== 0) return `depth ${log.depth}, bytes ${log.bytes} at the end`;
  await log.append([Buffer.from('more')]);
  await log.close();
  const again = await openLog(disk, isAlwaysDurable, damages);
  const [more, ...others] = await again.read();
  await again.close();
  if (damages.length > 0) return `damages: ${JSON.stringify(damages)}`;
  if (depth !== delivered.length) return `depth ${depth}, delivered ${delivered.length}`;
  if (more === undefined || Buffer.from(more.data).toString() !== 'more' || others.length > 0)
    return 'not usable';
  return keepsPromises(tracked, delivered, allowed) ? undefined : `delivered ${JSON.stringify(delivered)}`;
}
