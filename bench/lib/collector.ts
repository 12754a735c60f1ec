/** The garbage collector: its pauses in a window of time, and a full collection on demand. */
import { PerformanceObserver, constants, performance, type PerformanceEntry } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Node delivers an entry from a native immediate to an observer's queue: two turns, one to spare. */
const TURNS_UNTIL_REPORTED = 3;
/** The first finds dead objects, the second frees the array buffers that the first one only queued for sweeping. */
const PASSES = 2;

let collect: (() => unknown) | undefined;

/** Works without `--expose-gc` too: a smoke run inside a test process needs that. */
export function forceCollection(): void {
  collect ??= globalThis.gc ?? collectorOfNewContext();
  for (let pass = 0; pass < PASSES; pass++) collect();
}

function collectorOfNewContext(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

export interface Pauses {
  readonly count: number;
  readonly totalMs: number;
}

export interface CollectorTime extends Pauses {
  readonly longestMs: number;
  /** Pauses of the young generation alone: scavenges. */
  readonly young: Pauses;
}

/** From its construction to `close`, both immediate. It is read later, because Node reports pauses in later turns. */
export class CollectorWindow {
  readonly startMs = performance.now();
  endMs = Number.POSITIVE_INFINITY;

  close(): void {
    this.endMs = performance.now();
  }

  get elapsedMs(): number {
    return this.endMs - this.startMs;
  }
}

export class CollectorWatch {
  #pauses: PerformanceEntry[] = [];
  readonly #observer = new PerformanceObserver((list) => {
    this.#pauses.push(...list.getEntries());
  });

  constructor() {
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  /** Returns the pauses that began inside the window, and forgets all earlier ones. */
  async read(window: CollectorWindow): Promise<CollectorTime> {
    for (let turn = 0; turn < TURNS_UNTIL_REPORTED; turn++) await nextTurn();
    const pauses = this.#pauses.filter(
      ({ startTime }) => startTime >= window.startMs && startTime <= window.endMs,
    );
    this.#pauses = [];
    const longestMs = Math.max(0, ...pauses.map(({ duration }) => duration));
    return { ...sumOf(pauses), longestMs, young: sumOf(pauses.filter(isOfYoung)) };
  }

  stop(): void {
    this.#observer.disconnect();
  }
}

function sumOf(pauses: readonly PerformanceEntry[]): Pauses {
  return { count: pauses.length, totalMs: pauses.reduce((sum, { duration }) => sum + duration, 0) };
}

function isOfYoung(pause: PerformanceEntry & { readonly detail?: { readonly kind?: number } }): boolean {
  return pause.detail?.kind === constants.NODE_PERFORMANCE_GC_MINOR;
}
