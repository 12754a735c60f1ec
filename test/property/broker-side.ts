import { EmbeddedBroker, type Broker } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';

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
  wallNow(): number;
  /** Lets time pass; at each moment what happens then, one after the other. */
  advance(ms: number): Promise<void>;
  /** @throws Error - something in it is not as it must be. */
  check(): Promise<void>;
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
