import { EmbeddedBroker, type Broker } from 'escapement/tasks';
import { checkBroker, checkBrokerLog, ManualClock } from 'escapement/testing';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TRANSFER } from '../../src/tasks/broker/transfer.ts';

/** A broker with nothing in it, in a time that the test lets pass. */
export interface BrokerSide extends AsyncDisposable {
  readonly broker: Broker;
  /** What comes first of what came, or is due, at the same moment; see docs/redis.md. */
  readonly ties: Ties;
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

/** How an embedded broker is opened, and opened again; `reopen` gets the broker, and returns the one that takes its place. */
interface EmbeddedSide {
  readonly open: (clock: ManualClock) => Promise<EmbeddedBroker>;
  readonly reopen?: (broker: EmbeddedBroker, clock: ManualClock) => Promise<EmbeddedBroker>;
  readonly end?: (broker: EmbeddedBroker) => Promise<void>;
}

/** An embedded broker on virtual time. */
export async function embeddedSide(
  startMs: number,
  { open, reopen, end }: EmbeddedSide,
): Promise<BrokerSide & { readonly broker: EmbeddedBroker }> {
  const clock = new ManualClock({ nowMs: startMs, wallMs: startMs });
  let broker = await open(clock);
  return {
    get broker() {
      return broker;
    },
    ...{ ties: 'arrival', wallNow: () => clock.wallNow() },
    advance: (ms) => clock.advanceAsync(ms),
    check: () => {
      checkBroker(broker);
      return Promise.resolve();
    },
    ...(reopen && {
      reopen: async (): Promise<void> => {
        broker = await reopen(broker, clock);
      },
    }),
    [Symbol.asyncDispose]: async () => {
      await (end ?? ((it) => it.close()))(broker);
    },
  };
}

export const openEmbeddedSide: OpenBrokerSide = ({ startMs, ...options }) =>
  embeddedSide(startMs, { open: (clock) => EmbeddedBroker.open({ ...options, clock }) });

/** In memory. Instead of being opened again, it is copied as it is, and the copy takes its place. */
export const openCopiedSide: OpenBrokerSide = async ({ startMs, ...options }) => {
  const open = (clock: ManualClock): Promise<EmbeddedBroker> => EmbeddedBroker.open({ ...options, clock });
  const reopen = async (broker: EmbeddedBroker, clock: ManualClock): Promise<EmbeddedBroker> => {
    const copy = await open(clock);
    for await (const piece of broker[TRANSFER]().read()) await copy[TRANSFER]().write(piece);
    const queues = await copy.queues(); // the clock stands still, so nothing happens by itself
    await copy.forward(queues);
    await copy.deleteExpired(queues, 1_000);
    await broker.close();
    return copy;
  };
  return Object.assign(await embeddedSide(startMs, { open, reopen }), { reopensFull: true });
};

/** With a folder and small files. It is closed and opened again; every second time what a killed process leaves is opened. */
export const openDurableSide: OpenBrokerSide = async ({ startMs, ...options }) => {
  const folder = await mkdtemp(join(tmpdir(), 'escapement-broker-'));
  let opened = 0;
  const open = (clock: ManualClock): Promise<EmbeddedBroker> =>
    EmbeddedBroker.open({
      ...{ ...options, clock, dataPath: join(folder, `${opened}`), durability: 'os', maxBytesPerFile: 4_096 },
      onCorruption: ({ reason }) => {
        throw new Error(`damage was found: ${reason}`);
      },
    });
  const reopen = async (broker: EmbeddedBroker, clock: ManualClock): Promise<EmbeddedBroker> => {
    await checkBrokerLog(broker);
    const from = join(folder, `${opened}`);
    if (++opened % 2 === 0) await broker.close();
    const filter = (path: string): boolean => !path.includes('.lock');
    await cp(from, join(folder, `${opened}`), { recursive: true, filter });
    await broker.close();
    return open(clock);
  };
  const end = async (broker: EmbeddedBroker): Promise<void> => {
    await checkBrokerLog(broker);
    await broker.close();
    await rm(folder, { recursive: true });
  };
  return embeddedSide(startMs, { open, reopen, end });
};
