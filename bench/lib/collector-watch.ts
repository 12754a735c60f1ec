/**
 * How long the collector stopped the program, between two moments. Node reports each pause as a 'gc' performance
 * entry, in a later turn: so windows are opened and closed at once, and read after a turn of the event loop.
 */
import { PerformanceObserver, constants, performance, type PerformanceEntry } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Node hands an entry over from a native immediate to an observer's queue: two turns, one to spare. */
const TURNS_UNTIL_REPORTED = 3;

export interface CollectorTime extends Pauses {
  readonly longestMs: number;
  /** Those of the young generation alone: scavenges. */
  readonly young: Pauses;
}

export interface Pauses {
  readonly count: number;
  readonly totalMs: number;
}

export class CollectorWindow {
  readonly startMs = performance.now();
  endMs = Number.POSITIVE_INFINITY;

  close(): void {
    this.endMs = performance.now();
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

  /** Pauses that began inside the window. Reports each window once: older pauses are forgotten. */
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
