/** Puts, receives, a consumer that keeps up, recovery after a kill, and memory, each with a store in a folder of its own. */
import { createReadStream } from 'node:fs';
import { cp, mkdir, stat } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { closing, freeBytes, withFolder } from '../lib/folder.ts';
import { scenario, type Scenario } from '../lib/kinds.ts';
import { latencyValues, P50, P99, pace, WARM_UP_SHARE } from '../lib/latencies.ts';
import { spentBy } from '../lib/machine.ts';
import { inChild } from '../lib/memory.ts';
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
import type { BenchCase, Contestant, Described, Measurement } from '../lib/part.ts';
import { median, quantileOfSorted } from '../lib/statistics.ts';
import type { measureDepth, measureOpen } from './child.ts';
import { MESSAGE_BYTES, newMessage, OrderCheck, putAll, QUEUE_NAME, sentAtOf } from './messages.ts';
import type { MessageStore, OpenStore } from './messages.ts';
import * as stores from './stores.ts';

type Stores = readonly Contestant<OpenStore>[];
type Play = (open: OpenStore, folder: string, size: number) => Promise<Measurement>;

const CHILD = new URL('child.ts', import.meta.url);
const CALLERS = 64;

/** The same scenario for every store. */
function play(kinds: Stores, playWith: Play): Contestant<Scenario>[] {
  return contest(kinds, (open) => (size) => withFolder((folder) => playWith(open, folder, size)));
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
  return async (open, folder, size) => {
    const warmUp = Math.ceil(size * WARM_UP_SHARE);
    const latenciesMs = new Float64Array(size);
    return closing(await open(folder), async (store) => {
      await putAll(store, 0, warmUp, callers);
      const { elapsedMs, cpuUs } = await spentBy(() =>
        putAll(store, warmUp, warmUp + size, callers, latenciesMs),
      );
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
  more: Pick<Described, 'note' | 'rounds' | 'targets'> = {},
): BenchCase {
  return scenario({
    name,
    size: { ...size, of: 'messages' },
    metrics: [metric(TIME, 'µs/put'), metric('cpu', 'µs/put'), metric('p99', 'µs')],
    contestants: play(kinds, puttingBy(callers)),
    ...more,
  });
}

const LEAST_OF_RAW = 0.6;
/** 300 000 puts a second. */
const MOST_PUT_US = 3.33;

export const putCases = [
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
  await closing(await open(folder), (store) => putAll(store, 0, size, CALLERS));
  return closing(await open(folder), async (store) => {
    const check = new OrderCheck(size);
    const { elapsedMs, cpuUs } = await spentBy(() => store.take(size, check.see));
    return {
      values: { [TIME]: (elapsedMs * US_PER_MS) / size, cpu: cpuUs / size },
      problem: check.problem(),
    };
  });
};

export const receiveCase = scenario({
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
});

const MESSAGES_PER_MS = 10;

/** Delivers what a store has written from memory: nothing is read. */
function memoryReader(store: MessageStore): MessageStore {
  const arrivals = new stores.Arrivals();
  let written: Uint8Array[] = [];
  return {
    put: async (message) => {
      await store.put(message);
      written.push(message);
      arrivals.announce();
    },
    take: async (count, handle) => {
      for (let left = count; left > 0;) {
        await arrivals.wait();
        const arrived = written;
        written = [];
        arrived.forEach(handle);
        left -= arrived.length;
      }
    },
    close: () => store.close(),
  };
}

function readFromMemory(kind: Contestant<OpenStore>): Contestant<OpenStore>[] {
  const note =
    'and the consumer receives written messages from memory: nothing is read, nothing acknowledged.';
  return contest<OpenStore, OpenStore>(
    [{ ...kind, note }],
    (open) => async (folder) => memoryReader(await open(folder)),
  );
}

const keepUp: Play = async (open, folder, size) =>
  closing(await open(folder), async (store) => {
    const check = new OrderCheck(size);
    const latenciesMs = new Float64Array(size);
    let received = 0;
    const consume = (message: Uint8Array): void => {
      latenciesMs[received++] = performance.now() - sentAtOf(message);
      check.see(message);
    };
    const { cpuUs } = await spentBy(() => {
      const consuming = store.take(size, consume);
      return Promise.all([produce(store, size), consuming]);
    });
    const values = { cpu: cpuUs / size, ...latencyValues(latenciesMs, US_PER_MS) };
    return { values, problem: check.problem() };
  });

async function produce(store: MessageStore, size: number): Promise<void> {
  const puts: Promise<void>[] = [];
  await pace(size, MESSAGES_PER_MS, (number) => {
    puts.push(store.put(newMessage(number, performance.now())));
  });
  await Promise.all(puts);
}

function keepUpCase(name: string, kinds: Stores): BenchCase {
  return scenario({
    name: `a consumer that keeps up, 10 messages a millisecond: ${name}`,
    note:
      'The latency from the call of put to the consumer, both in one process. About ten messages are put at once, because ' +
      'the host’s timers have a resolution of a millisecond.',
    size: { full: 30_000, quick: 1_000, of: 'messages' },
    metrics: [metric(P50, 'µs'), metric(P99, 'µs'), metric('cpu', 'µs/message')],
    contestants: play(kinds, keepUp),
  });
}

export const keepUpCases = [
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
  await closing(await open(live), async (store) => {
    await putAll(store, 0, size, CALLERS);
    // While it is open: what a process leaves that is killed now. The socket of its lock cannot be copied.
    await cp(live, image, { recursive: true, filter: async (path) => !(await stat(path)).isSocket() });
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

export const recoveryCase = scenario({
  name: 'open what a killed process has left, a file of 100 MiB',
  note: 'The queue reads its last file and checks every message of it, from the memory of the host.',
  size: { full: 370_000, quick: 20_000, of: 'messages' },
  rounds: 3,
  metrics: [metric(TIME, 'ms')],
  contestants: play([readImage, stores.levelUnsyncedBatched, stores.lmdbUnsynced, stores.oursOs], recover),
});

const HEAP = 'heap growth';
/** Smaller growth is within the noise. */
const LEAST_MIB = 0.01;
const MOST_GROWTH_MIB = 1;
/** The smaller depth, as a share of the larger one. */
const SMALL_SHARE = 0.01;

function growthOf(bytes: number): number {
  return Math.max(bytes / MIB, LEAST_MIB);
}

export const depthCase = scenario({
  name: 'memory: from ten thousand messages to a million',
  note:
    'In a process of its own. Heap: live bytes after a collection, buffers included. rss is the whole process, and with ' +
    'lmdb the mapped pages of its file, which the host may reclaim.',
  size: { full: 1_000_000, quick: 20_000, of: 'messages' },
  rounds: 1,
  metrics: [metric(HEAP, 'MiB'), metric('rss growth', 'MiB')],
  contestants: contest<OpenStore, Scenario>(stores.DEPTH_STORES, (_, name) => async (size) => {
    const small = Math.ceil(size * SMALL_SHARE);
    const { heap, rss } = await withFolder((folder) =>
      inChild<typeof measureDepth>(CHILD, 'measureDepth', name, folder, small, size),
    );
    return { values: { [HEAP]: growthOf(heap), 'rss growth': growthOf(rss) }, problem: undefined };
  }),
  targets: [atMost('ours', HEAP, MOST_GROWTH_MIB)],
});

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

const openLarge: Scenario = (size) =>
  withFolder(async (folder) => {
    await closing(await stores.openOursOs(folder), (store) => putAll(store, 0, size, MANY_CALLERS));
    const results: Awaited<ReturnType<typeof measureOpen>>[] = [];
    const openings = size === MESSAGES ? OPENINGS : QUICK_OPENINGS;
    while (results.length < openings) {
      results.push(await inChild<typeof measureOpen>(CHILD, 'measureOpen', folder, QUEUE_NAME));
    }
    const medianOf = (name: keyof (typeof results)[0]): number => median(results.map((each) => each[name]));
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

export const openCase = scenario({
  name: 'open a queue with ten million messages',
  note:
    'The median of five processes that do nothing else. rss: the growth of the process until it had the first message; ' +
    'peak: the whole process, host and loader included. Ours alone, because filling the others takes minutes.',
  size: { full: MESSAGES, quick: 50_000, of: 'messages' },
  rounds: 1,
  metrics: [metric(OPEN, 'ms'), metric('first message', 'ms'), metric(RSS, 'MiB'), aside(PEAK, 'MiB')],
  contestants: [
    ours<Scenario>(
      'ours',
      freeBytes() < NEEDED_BYTES ? { cannot: 'it takes 3.3 GB of free disk' } : openLarge,
    ),
  ],
  targets: [
    atMost('ours', OPEN, MOST_OPEN_MS),
    atMost('ours', RSS, MOST_MIB),
    atMost('ours', PEAK, MOST_MIB),
  ],
});
