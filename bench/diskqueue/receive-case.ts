/** A consumer that works off what has piled up. */
import { performance } from 'node:perf_hooks';
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import type { Target } from '../lib/target.ts';
import { putAll } from './callers.ts';
import { readStream } from './file-stores.ts';
import { levelUnsyncedBatched } from './level-stores.ts';
import { lmdbUnsynced } from './lmdb-stores.ts';
import { contest, withStore, type OpenStore } from './message-store.ts';
import { OrderCheck } from './messages.ts';
import { oursLoop, oursReceive } from './our-stores.ts';

const TIME = 'time';
const US_PER_MS = 1_000;
const CALLERS = 64;
/** 500 000 receives a second. */
const MOST_US = 2;

async function play(open: OpenStore, folder: string, size: number): Promise<ScenarioOutcome> {
  await withStore(open, folder, (store) => putAll(store, 0, size, CALLERS));
  return withStore(open, folder, async (store) => {
    const check = new OrderCheck(size);
    const before = process.cpuUsage();
    const startMs = performance.now();
    await store.take(size, check.see);
    const elapsedMs = performance.now() - startMs;
    const { user, system } = process.cpuUsage(before);
    return {
      values: { [TIME]: (elapsedMs * US_PER_MS) / size, cpu: (user + system) / size },
      problem: check.problem(),
    };
  });
}

function targetFor({ name }: { readonly name: string }): Target {
  return { kind: 'limit', contestant: name, metric: TIME, atMost: MOST_US };
}

export const receiveCase: ScenarioCase = {
  kind: 'scenario',
  name: 'receive and acknowledge what is stored',
  note:
    'From a store that was opened anew. Not durable; classic-level and lmdb delete a thousand at a time, which is ' +
    'what they are good at: a crash would bring back up to a thousand.',
  size: { full: 500_000, quick: 10_000, of: 'messages' },
  metrics: [
    { name: TIME, unit: 'µs/message' },
    { name: 'cpu', unit: 'µs/message' },
  ],
  contestants: contest([readStream, levelUnsyncedBatched, lmdbUnsynced, oursReceive, oursLoop], play),
  targets: [targetFor(oursReceive), targetFor(oursLoop)],
};
