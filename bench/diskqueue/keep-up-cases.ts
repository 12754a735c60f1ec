/** A consumer that keeps up: how long is a message on its way, from the call of put to the hands of the consumer? */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { quantileOfSorted } from '../lib/statistics.ts';
import { Arrivals } from './arrivals.ts';
import { rawSynced, rawUnsynced } from './file-stores.ts';
import { levelSyncedBatched, levelUnsyncedBatched } from './level-stores.ts';
import { lmdbSynced, lmdbUnsynced } from './lmdb-stores.ts';
import { contest, withStore, type MessageStore, type OpenStore, type StoreKind } from './message-store.ts';
import { newMessage, OrderCheck, sentAtOf } from './messages.ts';
import { oursAlways, oursOs } from './our-stores.ts';

const MESSAGES_PER_MS = 10;
const US_PER_MS = 1_000;
const P50 = 'p50 latency';
/** The first ones find everything cold. */
const WARM_UP_SHARE = 0.1;

/** Hands over from memory what a store has written: nothing is read. */
class HandOver implements MessageStore {
  readonly #store: MessageStore;
  readonly #arrivals = new Arrivals();
  #written: Uint8Array[] = [];

  constructor(store: MessageStore) {
    this.#store = store;
  }

  async put(message: Uint8Array): Promise<void> {
    await this.#store.put(message);
    this.#written.push(message);
    this.#arrivals.announce();
  }

  async take(count: number, handle: (message: Uint8Array) => void): Promise<void> {
    for (let left = count; left > 0;) {
      await this.#arrivals.wait();
      const written = this.#written;
      this.#written = [];
      written.forEach(handle);
      left -= written.length;
    }
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

function handingOver({ open, ...kind }: StoreKind): StoreKind {
  if (typeof open !== 'function') return { ...kind, open };
  const note = 'and the consumer gets what was written from memory: nothing is read, nothing acknowledged.';
  return { ...kind, note, open: async (folder) => new HandOver(await open(folder)) };
}

async function play(open: OpenStore, folder: string, size: number): Promise<ScenarioOutcome> {
  return withStore(open, folder, async (store) => {
    const check = new OrderCheck(size);
    const latenciesMs = new Float64Array(size);
    let received = 0;
    const before = process.cpuUsage();
    const consumer = store.take(size, (message) => {
      latenciesMs[received++] = performance.now() - sentAtOf(message);
      check.see(message);
    });
    await Promise.all([produce(store, size), consumer]);
    const { user, system } = process.cpuUsage(before);
    const sorted = latenciesMs.subarray(Math.ceil(size * WARM_UP_SHARE)).sort();
    return {
      values: {
        [P50]: quantileOfSorted(sorted, 0.5) * US_PER_MS,
        'p99 latency': quantileOfSorted(sorted, 0.99) * US_PER_MS,
        cpu: (user + system) / size,
      },
      problem: check.problem(),
    };
  });
}

/** The host's timers are late at times: then what is due is put at once. */
async function produce(store: MessageStore, size: number): Promise<void> {
  const startMs = performance.now();
  const puts: Promise<void>[] = [];
  while (puts.length < size) {
    await sleep(1);
    const due = Math.min(Math.floor((performance.now() - startMs) * MESSAGES_PER_MS), size);
    while (puts.length < due) puts.push(store.put(newMessage(puts.length, performance.now())));
  }
  await Promise.all(puts);
}

function keepUpCase(name: string, kinds: readonly StoreKind[]): ScenarioCase {
  return {
    kind: 'scenario',
    name: `a consumer that keeps up, 10 messages a millisecond: ${name}`,
    note: 'Producer and consumer in one process; about ten messages come at once, which is as well as the host’s timers do it.',
    size: { full: 30_000, quick: 1_000, of: 'messages' },
    metrics: [
      { name: P50, unit: 'µs' },
      { name: 'p99 latency', unit: 'µs' },
      { name: 'cpu', unit: 'µs/message' },
    ],
    contestants: contest(kinds, play),
  };
}

export const keepUpCases: readonly ScenarioCase[] = [
  keepUpCase('durable', [handingOver(rawSynced), levelSyncedBatched, lmdbSynced, oursAlways]),
  keepUpCase('not durable', [handingOver(rawUnsynced), levelUnsyncedBatched, lmdbUnsynced, oursOs]),
];
