import { useEffect, useState } from 'preact/hooks';
import type { TaskState } from '../../tasks/task-state.ts';
import { MAX_LIVE_QUEUES, type HistoryJson, type QueueJson } from '../dashboard-json.ts';
import { getJson, withQuery } from './api.ts';
import { onLive } from './live.ts';

/** Rates of the last minute, for sparklines. Read once for each queue that is shown, then extended by the live events. */
export interface Rates {
  readonly processed: readonly number[];
  readonly failed: readonly number[];
}

const KEPT = 60;
/** Queues that are kept: more than an event has, so that queues come and go in a page that is open for weeks. */
const MOST_QUEUES = 2 * MAX_LIVE_QUEUES;
/** All queues together are kept under this name, which no queue can have. */
const ALL = '';
/** Those that were extended or read last come last. */
const rates = new Map<string, Rates>();
const asked = new Set<string>();

type QueueNumber = TaskState | 'processed' | 'failed' | 'processedPerS' | 'failedPerS';

onLive(({ status, live }) => {
  if (status !== 'open' || live === undefined || live.unavailable !== undefined) return;
  for (const queue of live.queues) extend(queue.queue, queue.processedPerS ?? 0, queue.failedPerS ?? 0);
  extend(ALL, sumOf(live.queues, 'processedPerS'), sumOf(live.queues, 'failedPerS'));
});

export function sumOf(queues: readonly QueueJson[], field: QueueNumber): number {
  return queues.reduce((sum, queue) => sum + (queue[field] ?? 0), 0);
}

function extend(name: string, processed: number, failed: number): void {
  const known = ratesOf(name);
  keep(name, [...known.processed, processed], [...known.failed, failed]);
}

function keep(name: string, processed: readonly number[], failed: readonly number[]): void {
  rates.delete(name);
  rates.set(name, { processed: processed.slice(-KEPT), failed: failed.slice(-KEPT) });
  const [oldest] = rates.keys();
  if (rates.size <= MOST_QUEUES || oldest === undefined) return;
  rates.delete(oldest);
  asked.delete(oldest);
}

export function ratesOf(queue = ALL): Rates {
  return rates.get(queue) ?? { processed: [], failed: [] };
}

/** Reads the last minute of queues for which it has not been read, one after the other: what a page shows, a few dozen at most. */
export function useRates(queues: readonly string[]): void {
  const [, render] = useState(0);
  const key = queues.join('\n');
  useEffect(() => {
    const leaving = new AbortController();
    const readAll = async (): Promise<void> => {
      for (const queue of [ALL, ...queues]) {
        if (leaving.signal.aborted) return;
        if (asked.has(queue)) continue;
        asked.add(queue);
        await readRates(queue, leaving.signal);
      }
      render((count) => count + 1);
    };
    void readAll();
    return () => leaving.abort();
  }, [key]);
}

async function readRates(queue: string, signal: AbortSignal): Promise<void> {
  try {
    const { processedPerS, failedPerS } = await getJson<HistoryJson>(withQuery('history', { queue }), signal);
    keep(queue, processedPerS, failedPerS);
  } catch {
    // The sparkline grows from the live events, then.
    asked.delete(queue);
  }
}
