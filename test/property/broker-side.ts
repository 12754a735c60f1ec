import { EmbeddedBroker, type Broker } from 'escapement/tasks';
import { checkBroker, checkBrokerLog, ManualClock } from 'escapement/testing';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TRANSFER } from '../../src/tasks/broker/transfer.ts';

/** What a history does to a broker. */
export type TestedBroker = Pick<
  Broker,
  | 'enqueue'
  | 'enqueueMany'
  | 'enqueueTick'
  | 'dequeue'
  | 'complete'
  | 'retry'
  | 'archive'
  | 'release'
  | 'discard'
  | 'writeResult'
  | 'writeProgress'
  | 'extendLeases'
  | 'recover'
  | 'takeGroup'
  | 'replaceSet'
  | 'forward'
  | 'reclaimSets'
  | 'deleteExpired'
  | 'groups'
  | 'queues'
  | 'queueStats'
  | 'tasks'
  | 'change'
  | 'updatePayload'
  | 'limits'
  | 'setLimits'
  | 'keys'
  | 'pause'
  | 'resume'
  | 'removeQueue'
>;

/** A broker with nothing in it, in a time that the test lets pass. */
export interface BrokerSide extends AsyncDisposable {
  readonly broker: TestedBroker;
  /** What comes first of what came, or is due, at the same moment; see docs/redis.md. */
  readonly ties: Ties;
  /** Whether lists of a group show also what is held as a set. */
  readonly showsHeld: boolean;
  /** Keys in the order of their turns; undefined if pending tasks are listed in that order. */
  readonly turns?: (queue: string) => Promise<readonly string[]>;
  wallNow(): number;
  /** Lets time pass; at each moment what happens then, one after the other. */
  advance(ms: number): Promise<void>;
  /** @throws Error - something in it is not as it must be. */
  check(): Promise<void>;
  /** Closes the broker, or kills it, and opens it again; undefined if its tasks would be gone. */
  readonly reopen?: () => Promise<void>;
  /** Whether every bucket of a rate is full after that. */
  readonly reopensFull?: boolean;
}

export type Ties = 'arrival' | 'id';

export interface BrokerSideOptions {
  readonly startMs: number;
  readonly maxArchived: number;
  readonly archiveRetentionMs: number;
}

export type OpenBrokerSide = (options: BrokerSideOptions) => Promise<BrokerSide>;

export const openEmbeddedSide: OpenBrokerSide = async ({ startMs, ...options }) => {
  const clock = new ManualClock({ nowMs: startMs, wallMs: startMs });
  const broker = await EmbeddedBroker.open({ ...options, clock });
  return {
    broker,
    ties: 'arrival',
    showsHeld: false,
    wallNow: () => clock.wallNow(),
    advance: (ms) => clock.advanceAsync(ms),
    check: () => {
      checkBroker(broker);
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => broker.close(),
  };
};

/** In memory. Instead of being opened again, it is copied as it is, and the copy takes its place. */
export const openCopiedSide: OpenBrokerSide = async ({ startMs, ...options }) => {
  const clock = new ManualClock({ nowMs: startMs, wallMs: startMs });
  let broker = await EmbeddedBroker.open({ ...options, clock });
  return {
    get broker() {
      return broker;
    },
    ...{ ties: 'arrival', showsHeld: false, wallNow: () => clock.wallNow() },
    advance: (ms) => clock.advanceAsync(ms),
    check: () => {
      checkBroker(broker);
      return Promise.resolve();
    },
    reopensFull: true,
    async reopen() {
      const copy = await EmbeddedBroker.open({ ...options, clock });
      for await (const piece of broker[TRANSFER]().read()) await copy[TRANSFER]().write(piece);
      const queues = await copy.queues(); // the clock stands still, so nothing happens by itself
      await copy.forward(queues);
      await copy.deleteExpired(queues, 1_000);
      await broker.close();
      broker = copy;
    },
    [Symbol.asyncDispose]: () => broker.close(),
  };
};

/** With a folder and small files. It is closed and opened again; every second time what a killed process leaves is opened. */
export const openDurableSide: OpenBrokerSide = async ({ startMs, ...options }) => {
  const clock = new ManualClock({ nowMs: startMs, wallMs: startMs });
  const folder = await mkdtemp(join(tmpdir(), 'escapement-broker-'));
  let opened = 0;
  const open = (): Promise<EmbeddedBroker> =>
    EmbeddedBroker.open({
      ...{ ...options, clock, dataPath: join(folder, `${opened}`), durability: 'os', maxBytesPerFile: 4_096 },
      onCorruption: ({ reason }) => {
        throw new Error(`damage was found: ${reason}`);
      },
    });
  let broker = await open();
  return {
    get broker() {
      return broker;
    },
    ...{ ties: 'arrival', showsHeld: false, wallNow: () => clock.wallNow() },
    advance: (ms) => clock.advanceAsync(ms),
    check: () => {
      checkBroker(broker);
      return Promise.resolve();
    },
    async reopen() {
      await checkBrokerLog(broker);
      const from = join(folder, `${opened}`);
      if (++opened % 2 === 0) await broker.close();
      await cp(from, join(folder, `${opened}`), {
        recursive: true,
        filter: (path) => !path.includes('.lock'),
      });
      await broker.close();
      broker = await open();
    },
    async [Symbol.asyncDispose]() {
      await checkBrokerLog(broker);
      await broker.close();
      await rm(folder, { recursive: true });
    },
  };
};
