/** Puts, receives, a consumer that keeps up, recovery after a kill, and memory, each with a store in a folder of its own. */
import { createReadStream } from 'node:fs';
import { cp, mkdir, stat } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { closing, freeBytes, withFolder } from '../lib/folder.ts';
import type { Scenario } from '../lib/kinds.ts';
import { spentBy } from '../lib/machine.ts';
import { inChild } from '../lib/memory.ts';
import { contest, MIB, ours, TIME, US_PER_MS, type Contestant, type Measurement } from '../lib/part.ts';
import { median, quantileOfSorted } from '../lib/statistics.ts';
import { latencyValues, pace, WARM_UP_SHARE } from '../lib/work.ts';
import type { measureDepth, measureOpen } from './child.ts';
import { MESSAGE_BYTES, newMessage, OrderCheck, putAll, QUEUE_NAME, sentAtOf } from './messages.ts';
import type { MessageStore, OpenStore } from './messages.ts';
import { FILE, openOursOs, openStream, READ_BYTES, STORES } from './stores.ts';

const CHILD = new URL('child.ts', import.meta.url);
const CALLERS = 64;

type Play = (open: OpenStore, folder: string, size: number) => Promise<Measurement>;

/** The same scenario for every store. */
function play(stores: readonly Contestant<OpenStore>[], playWith: Play): Contestant<Scenario>[] {
  return contest(stores, (open) => (size) => withFolder((folder) => playWith(open, folder, size)));
}

export function puts(stores: 'putDurable' | 'put', callers: number): Contestant<Scenario>[] {
  return play(STORES[stores], (open, folder, size) =>
    closing(open(folder), async (store) => {
      const warmUp = Math.ceil(size * WARM_UP_SHARE);
      const latenciesMs = new Float64Array(size);
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
    }),
  );
}

export const receives = play(STORES.receive, async (open, folder, size) => {
  await closing(open(folder), (store) => putAll(store, 0, size, CALLERS));
  return closing(open(folder), async (store) => {
    const check = new OrderCheck(size);
    const { elapsedMs, cpuUs } = await spentBy(() => store.take(size, check.see));
    const values = { [TIME]: (elapsedMs * US_PER_MS) / size, cpu: cpuUs / size };
    return { values, problem: check.problem() };
  });
});

const MESSAGES_PER_MS = 10;

async function produce(store: MessageStore, size: number): Promise<void> {
  const pending: Promise<void>[] = [];
  await pace(size, MESSAGES_PER_MS, (number) => {
    pending.push(store.put(newMessage(number, performance.now())));
  });
  await Promise.all(pending);
}

export function keepingUp(stores: 'keepUpDurable' | 'keepUp'): Contestant<Scenario>[] {
  return play(STORES[stores], (open, folder, size) =>
    closing(open(folder), async (store) => {
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
    }),
  );
}

export const recoveries = play(STORES.recover, async (open, folder, size) => {
  const image = `${folder}/image`;
  const live = `${folder}/live`;
  await mkdir(live);
  await closing(open(live), async (store) => {
    await putAll(store, 0, size, CALLERS);
    // While it is open: what a process leaves that is killed now. The socket of its lock cannot be copied.
    await cp(live, image, { recursive: true, filter: async (path) => !(await stat(path)).isSocket() });
  });
  const startMs = performance.now();
  if (open === openStream) {
    const stream = createReadStream(`${image}/${FILE}`, { highWaterMark: READ_BYTES });
    await stream.forEach(() => undefined);
  }
  return closing(open(image), async (store) => {
    const elapsedMs = performance.now() - startMs;
    const check = new OrderCheck(size);
    await store.take(size, check.see);
    return { values: { [TIME]: elapsedMs }, problem: check.problem() };
  });
});

/** Smaller growth is within the noise. */
const LEAST_MIB = 0.01;
/** The smaller depth, as a share of the larger one. */
const SMALL_SHARE = 0.01;

export const depths = contest<OpenStore, Scenario>(STORES.depth, (_, name) => async (size) => {
  const small = Math.ceil(size * SMALL_SHARE);
  const { heap, rss } = await withFolder((folder) =>
    inChild<typeof measureDepth>(CHILD, 'measureDepth', name, folder, small, size),
  );
  const growthOf = (bytes: number): number => Math.max(bytes / MIB, LEAST_MIB);
  return { values: { 'heap growth': growthOf(heap), 'rss growth': growthOf(rss) } };
});

const FULL_MESSAGES = 10_000_000;
/** With headers and a reserve. */
const NEEDED_BYTES = FULL_MESSAGES * MESSAGE_BYTES * 1.3;
const MANY_CALLERS = 1_000;
const OPENINGS = 5;

const openLarge: Scenario = (size) =>
  withFolder(async (folder) => {
    await closing(openOursOs(folder), (store) => putAll(store, 0, size, MANY_CALLERS));
    const results: Awaited<ReturnType<typeof measureOpen>>[] = [];
    while (results.length < (size === FULL_MESSAGES ? OPENINGS : 1)) {
      results.push(await inChild<typeof measureOpen>(CHILD, 'measureOpen', folder, QUEUE_NAME));
    }
    const medianOf = (name: keyof (typeof results)[0]): number => median(results.map((each) => each[name]));
    const wrong = results.find(({ depth, bytes }) => depth !== size || bytes !== MESSAGE_BYTES);
    return {
      values: {
        open: medianOf('openMs'),
        'first message': medianOf('firstMs'),
        rss: medianOf('rss') / MIB,
        peak: medianOf('peak') / MIB,
      },
      problem: wrong && `there are not ${size} messages of ${MESSAGE_BYTES} bytes: ${JSON.stringify(wrong)}`,
    };
  });

export const openings = [
  ours<Scenario>('ours', freeBytes() < NEEDED_BYTES ? { cannot: 'it takes 3.3 GB of free disk' } : openLarge),
];
