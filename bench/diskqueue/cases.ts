/** Puts, receives, a consumer that keeps up, recovery after a kill, and memory, each with a store in a folder of its own. */
import { createReadStream } from 'node:fs';
import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { latencyValues, P50, P99, pace, WARM_UP_SHARE } from '../lib/latencies.ts';
import { cpuUsSince } from '../lib/machine.ts';
import { runChild } from '../lib/memory.ts';
import {
  aside,
  atLeast,
  atMost,
  baseline,
  contest,
  metric,
  MIB,
  ours,
  TIME,
  US_PER_MS,
} from '../lib/part.ts';
import type { Contestant, Measurement, OpenScenario, ScenarioCase } from '../lib/part.ts';
import { median, quantileOfSorted } from '../lib/statistics.ts';
import {
  freeBytes,
  MESSAGE_BYTES,
  newMessage,
  OrderCheck,
  putAll,
  QUEUE_NAME,
  sentAtOf,
  withFolder,
  withStore,
  type MessageStore,
  type OpenStore,
} from './messages.ts';
import * as stores from './stores.ts';

type Stores = readonly Contestant<OpenStore>[];
type Play = (open: OpenStore, folder: string, size: number) => Promise<Measurement>;

const CHILD = new URL('child.ts', import.meta.url);
const CALLERS = 64;

/** The same scenario for every store. */
function play(kinds: Stores, scenario: Play): Contestant<OpenScenario>[] {
  return contest(kinds, (open) => (size) => withFolder((folder) => scenario(open, folder, size)));
}

const DURABLE: Stores = [
  stores.rawSynced,
  stores.writeStreamSynced,
  stores.levelSynced,
  stores.levelSyncedBatched,
  stores.lmdbSynced,
  stores.oursAlways,
];
const NOT_DURABLE: Stores = [
  stores.rawUnsynced,
  stores.writeStream,
  stores.levelUnsynced,
  stores.levelUnsyncedBatched,
  stores.lmdbUnsynced,
  stores.oursOs,
];

function puttingBy(callers: number): Play {
  return (open, folder, size) => {
    const warmUp = Math.ceil(size * WARM_UP_SHARE);
    const latenciesMs = new Float64Array(size);
    return withStore(open, folder, async (store) => {
      await putAll(store, 0, warmUp, callers);
      const before = process.cpuUsage();
      const startMs = performance.now();
      await putAll(store, warmUp, warmUp + size, callers, latenciesMs);
      const elapsedMs = performance.now() - startMs;
      const cpuUs = cpuUsSince(before);
      const check = new OrderCheck(warmUp + size);
      await store.take(warmUp + size, check.see);
      return {
        values: {
          [TIME]: (elapsedMs * US_PER_MS) / size,
          cpu: cpuUs / size,
          p99: quantileOfSorted(latenciesMs.sort(), 0.99) * US_PER_MS,
        },
        problem: check.problem(),
      };
    });
  };
}

function putCase(
  name: string,
  kinds: Stores,
  callers: number,
  size: { readonly full: number; readonly quick: number },
  more: Pick<ScenarioCase, 'note' | 'rounds' | 'targets'> = {},
): ScenarioCase {
  return {
    kind: 'scenario',
    name,
    size: { ...size, of: 'messages' },
    metrics: [metric(TIME, 'µs/put'), metric('cpu', 'µs/put'), metric('p99', 'µs')],
    contestants: play(kinds, puttingBy(callers)),
    ...more,
  };
}

const LEAST_OF_RAW = 0.6;
/** 300 000 puts a second. */
const MOST_PUT_US = 3.33;

export const putCases: readonly ScenarioCase[] = [
  putCase(
    'put, durable: 64 callers',
    DURABLE,
    CALLERS,
    { full: 30_000, quick: 1_000 },
    {
      note: 'Each caller waits for its put before the next one. p99 is the latency of a put.',
      targets: [atLeast('ours', TIME, LEAST_OF_RAW)],
    },
  ),
  putCase('put, durable: 1 caller', DURABLE, 1, { full: 1_000, quick: 50 }),
  putCase(
    'put, not durable: 64 callers',
    NOT_DURABLE,
    CALLERS,
    { full: 1_000_000, quick: 10_000 },
    {
      note: 'The queue writes three files and syncs each when it is full, which the time includes. The others sync nothing.',
      rounds: 3,
      targets: [atMost('ours', TIME, MOST_PUT_US)],
    },
  ),
  putCase('put, not durable: 1 caller', NOT_DURABLE, 1, { full: 30_000, quick: 1_000 }),
];

/** 500 000 receives a second. */
const MOST_RECEIVE_US = 2;

const receiveAll: Play = async (open, folder, size) => {
  await withStore(open, folder, (store) => putAll(store, 0, size, CALLERS));
  return withStore(open, folder, async (store) => {
    const check = new OrderCheck(size);
    const before = process.cpuUsage();
    const startMs = performance.now();
    await store.take(size, check.see);
    const elapsedMs = performance.now() - startMs;
    return {
      values: { [TIME]: (elapsedMs * US_PER_MS) / size, cpu: cpuUsSince(before) / size },
      problem: check.problem(),
    };
  });
};

export const receiveCase: ScenarioCase = {
  kind: 'scenario',
  name: 'receive and acknowledge what is stored',
  note:
    'From a store that was opened again. Not durable; classic-level and lmdb delete a thousand at a time, which suits ' +
    'them: after a crash up to a thousand would be received again.',
  size: { full: 500_000, quick: 10_000, of: 'messages' },
  metrics: [metric(TIME, 'µs/message'), metric('cpu', 'µs/message')],
  contestants: play(
    [
      stores.readStream,
      stores.levelUnsyncedBatched,
      stores.lmdbUnsynced,
      stores.oursReceive,
      stores.oursLoop,
    ],
    receiveAll,
  ),
  targets: [
    atMost(stores.oursReceive.name, TIME, MOST_RECEIVE_US),
    atMost(stores.oursLoop.name, TIME, MOST_RECEIVE_US),
  ],
};

const MESSAGES_PER_MS = 10;

/** Delivers what a store has written from memory: nothing is read. */
class MemoryReader implements MessageStore {
  readonly #store: MessageStore;
  readonly #arrivals = new stores.Arrivals();
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

function readFromMemory(kind: Contestant<OpenStore>): Contestant<OpenStore>[] {
  const note =
    'and the consumer receives written messages from memory: nothing is read, nothing acknowledged.';
  return contest<OpenStore, OpenStore>(
    [{ ...kind, note }],
    (open) => async (folder) => new MemoryReader(await open(folder)),
  );
}

const keepUp: Play = (open, folder, size) =>
  withStore(open, folder, async (store) => {
    const check = new OrderCheck(size);
    const latenciesMs = new Float64Array(size);
    let received = 0;
    const before = process.cpuUsage();
    const consumer = store.take(size, (message) => {
      latenciesMs[received++] = performance.now() - sentAtOf(message);
      check.see(message);
    });
    await Promise.all([produce(store, size), consumer]);
    const values = { cpu: cpuUsSince(before) / size, ...latencyValues(latenciesMs, US_PER_MS) };
    return { values, problem: check.problem() };
  });

async function produce(store: MessageStore, size: number): Promise<void> {
  const puts: Promise<void>[] = [];
  await pace(size, MESSAGES_PER_MS, (number) => {
    puts.push(store.put(newMessage(number, performance.now())));
  });
  await Promise.all(puts);
}

function keepUpCase(name: string, kinds: Stores): ScenarioCase {
  return {
    kind: 'scenario',
    name: `a consumer that keeps up, 10 messages a millisecond: ${name}`,
    note:
      'The latency from the call of put to the consumer, both in one process. About ten messages are put at once, because ' +
      'the host’s timers have a resolution of a millisecond.',
    size: { full: 30_000, quick: 1_000, of: 'messages' },
    metrics: [metric(P50, 'µs'), metric(P99, 'µs'), metric('cpu', 'µs/message')],
    contestants: play(kinds, keepUp),
  };
}

export const keepUpCases: readonly ScenarioCase[] = [
  keepUpCase('durable', [
    ...readFromMemory(stores.rawSynced),
    stores.levelSyncedBatched,
    stores.lmdbSynced,
    stores.oursAlways,
  ]),
  keepUpCase('not durable', [
    ...readFromMemory(stores.rawUnsynced),
    stores.levelUnsyncedBatched,
    stores.lmdbUnsynced,
    stores.oursOs,
  ]),
];

const readImage = baseline(
  'fs.ReadStream',
  stores.openStream,
  'reads the file that fs.WriteStream wrote from its beginning to its end, and checks nothing.',
);

const recover: Play = async (open, folder, size) => {
  const image = `${folder}/image`;
  const live = `${folder}/live`;
  await mkdir(live);
  await withStore(open, live, async (store) => {
    await putAll(store, 0, size, CALLERS);
    await copyFiles(live, image); // while it is open: what a process leaves that is killed now
  });
  const startMs = performance.now();
  if (open === stores.openStream) {
    const stream = createReadStream(`${image}/${stores.FILE}`, { highWaterMark: stores.READ_BYTES });
    await stream.forEach(() => undefined);
  }
  const store = await open(image);
  const elapsedMs = performance.now() - startMs;
  const check = new OrderCheck(size);
  await store.take(size, check.see);
  await store.close();
  return { values: { [TIME]: elapsedMs }, problem: check.problem() };
};

async function copyFiles(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (entry.isDirectory()) await copyFiles(`${from}/${entry.name}`, `${to}/${entry.name}`);
    else if (entry.isFile()) await copyFile(`${from}/${entry.name}`, `${to}/${entry.name}`);
  }
}

export const recoveryCase: ScenarioCase = {
  kind: 'scenario',
  name: 'open what a killed process has left, a file of 100 MiB',
  note: 'The queue reads its last file and checks every message of it, from the memory of the host.',
  size: { full: 370_000, quick: 20_000, of: 'messages' },
  rounds: 3,
  metrics: [metric(TIME, 'ms')],
  contestants: play([readImage, stores.levelUnsyncedBatched, stores.lmdbUnsynced, stores.oursOs], recover),
};

const HEAP = 'heap growth';
/** Smaller growth is within the noise. */
const LEAST_MIB = 0.01;
const MOST_GROWTH_MIB = 1;
/** The smaller depth, as a share of the larger one. */
const SMALL_SHARE = 0.01;

function growthOf(bytes = Number.NaN): number {
  return Math.max(bytes / MIB, LEAST_MIB);
}

export const depthCase: ScenarioCase = {
  kind: 'scenario',
  name: 'memory: from ten thousand messages to a million',
  note:
    'In a process of its own. Heap: live bytes after a collection, buffers included. rss is the whole process, and with ' +
    'lmdb the mapped pages of its file, which the host may reclaim.',
  size: { full: 1_000_000, quick: 20_000, of: 'messages' },
  rounds: 1,
  metrics: [metric(HEAP, 'MiB'), metric('rss growth', 'MiB')],
  contestants: contest<OpenStore, OpenScenario>(stores.DEPTH_STORES, (_, name) => async (size) => {
    const small = Math.ceil(size * SMALL_SHARE);
    const { heap, rss } = await withFolder((folder) =>
      runChild(CHILD, 'depth', name, folder, String(small), String(size)),
    );
    return { values: { [HEAP]: growthOf(heap), 'rss growth': growthOf(rss) }, problem: undefined };
  }),
  targets: [atMost('ours', HEAP, MOST_GROWTH_MIB)],
};

const MESSAGES = 10_000_000;
/** With headers and a reserve. */
const NEEDED_BYTES = MESSAGES * MESSAGE_BYTES * 1.3;
const MANY_CALLERS = 1_000;
const OPENINGS = 5;
const QUICK_OPENINGS = 1;
const OPEN = 'open';
const RSS = 'rss';
const PEAK = 'peak';
const MOST_OPEN_MS = 5_000;
const MOST_MIB = 200;

const openLarge: OpenScenario = (size) =>
  withFolder(async (folder) => {
    await withStore(stores.openOursOs, folder, (store) => putAll(store, 0, size, MANY_CALLERS));
    const results: Record<string, number>[] = [];
    const openings = size === MESSAGES ? OPENINGS : QUICK_OPENINGS;
    while (results.length < openings) results.push(await runChild(CHILD, 'open', folder, QUEUE_NAME));
    const medianOf = (name: string): number => median(results.map((result) => result[name] ?? Number.NaN));
    const wrong = results.find(({ depth, bytes }) => depth !== size || bytes !== MESSAGE_BYTES);
    return {
      values: {
        [OPEN]: medianOf('openMs'),
        'first message': medianOf('firstMs'),
        [RSS]: medianOf('rss') / MIB,
        [PEAK]: medianOf('peak') / MIB,
      },
      problem: wrong && `there are not ${size} messages of ${MESSAGE_BYTES} bytes: ${JSON.stringify(wrong)}`,
    };
  });

export const openCase: ScenarioCase = {
  kind: 'scenario',
  name: 'open a queue with ten million messages',
  note:
    'The median of five processes that do nothing else. rss: the growth of the process until it had the first message; ' +
    'peak: the whole process, host and loader included. Ours alone, because filling the others takes minutes.',
  size: { full: MESSAGES, quick: 50_000, of: 'messages' },
  rounds: 1,
  metrics: [metric(OPEN, 'ms'), metric('first message', 'ms'), metric(RSS, 'MiB'), aside(PEAK, 'MiB')],
  contestants: [
    ours<OpenScenario>(
      'ours',
      freeBytes() < NEEDED_BYTES ? { cannot: 'it takes 3.3 GB of free disk' } : openLarge,
    ),
  ],
  targets: [
    atMost('ours', OPEN, MOST_OPEN_MS),
    atMost('ours', RSS, MOST_MIB),
    atMost('ours', PEAK, MOST_MIB),
  ],
};
