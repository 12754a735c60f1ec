/** Opening a queue that nobody has read for long. */
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { median } from '../lib/statistics.ts';
import { freeBytes, withFolder } from './bench-folder.ts';
import { putAll } from './callers.ts';
import { withStore, type StoreKind } from './message-store.ts';
import { MESSAGE_BYTES } from './messages.ts';
import { oursOs } from './our-stores.ts';
import { runChild } from '../lib/run-child.ts';

const MESSAGES = 10_000_000;
/** With headers, and something to spare. */
const NEEDED_BYTES = MESSAGES * MESSAGE_BYTES * 1.3;
const CALLERS = 1_000;
const OPENINGS = 5;
const QUICK_OPENINGS = 1;

const OPEN = 'open';
const RSS = 'rss';
const PEAK = 'peak';
const MIB = 1024 * 1024;
const MOST_MS = 5_000;
const MOST_MIB = 200;

const open = freeBytes() < NEEDED_BYTES ? { cannot: 'it takes 3.3 GB of free disk' } : measure;

async function measure(size: number): Promise<ScenarioOutcome> {
  return withFolder(async (folder) => {
    await fill(oursOs, folder, size);
    const results: Record<string, number>[] = [];
    const openings = size === MESSAGES ? OPENINGS : QUICK_OPENINGS;
    while (results.length < openings)
      results.push(await runChild(new URL('open-child.ts', import.meta.url), folder));
    const medianOf = (name: string): number => median(results.map((result) => result[name] ?? Number.NaN));
    return {
      values: {
        [OPEN]: medianOf('openMs'),
        'first message': medianOf('firstMs'),
        [RSS]: medianOf('rss') / MIB,
        [PEAK]: medianOf('peak') / MIB,
      },
      problem: problemOf(results, size),
    };
  });
}

async function fill({ open: openStore }: StoreKind, folder: string, size: number): Promise<void> {
  if (typeof openStore !== 'function') return;
  await withStore(openStore, folder, (store) => putAll(store, 0, size, CALLERS));
}

function problemOf(results: readonly Record<string, number>[], size: number): string | undefined {
  const wrong = results.find(({ depth, bytes }) => depth !== size || bytes !== MESSAGE_BYTES);
  return wrong === undefined
    ? undefined
    : `not ${size} messages of ${MESSAGE_BYTES}: ${JSON.stringify(wrong)}`;
}

export const openCase: ScenarioCase = {
  kind: 'scenario',
  name: 'open a queue with ten million messages',
  note:
    'The median of five processes that do nothing else. rss: by how much the process has grown until it had the first ' +
    'message; peak: all of it, host and loader included. The others are not asked: filling them takes minutes.',
  size: { full: MESSAGES, quick: 50_000, of: 'messages' },
  rounds: 1,
  metrics: [
    { name: OPEN, unit: 'ms' },
    { name: 'first message', unit: 'ms' },
    { name: RSS, unit: 'MiB' },
    { name: PEAK, unit: 'MiB', isAside: true },
  ],
  contestants: [{ name: 'ours', role: 'ours', open }],
  targets: [
    { kind: 'limit', contestant: 'ours', metric: OPEN, atMost: MOST_MS },
    { kind: 'limit', contestant: 'ours', metric: RSS, atMost: MOST_MIB },
    { kind: 'limit', contestant: 'ours', metric: PEAK, atMost: MOST_MIB },
  ],
};
