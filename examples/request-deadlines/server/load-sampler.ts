import type { SystemTimer, TimerSnapshot } from 'escapement';
import type { DeadlineServer } from './deadline-server.ts';

/** Often enough for a smooth curve, seldom enough not to show in it. */
const SAMPLE_EVERY_MS = 50;
/** A snapshot visits every bucket: four a second are plenty for an eye. */
const SAMPLES_PER_SNAPSHOT = 5;

/** How full things were at one moment. */
export interface LoadSample {
  readonly atMs: number;
  /** Requests waiting for their answer. */
  readonly requests: number;
  /** Timers waiting in the wheels. */
  readonly timers: number;
}

/** Watches the server and its timer from a host interval of its own, which costs the shared timer nothing. */
export class LoadSampler {
  readonly samples: LoadSample[] = [];
  readonly #timer: SystemTimer;
  readonly #server: DeadlineServer;
  readonly #onSnapshot: (snapshot: TimerSnapshot, elapsedMs: number) => void;
  readonly #startMs = performance.now();
  readonly #interval: NodeJS.Timeout;
  #fullest: TimerSnapshot;
  #peakRssBytes = 0;

  constructor(
    timer: SystemTimer,
    server: DeadlineServer,
    onSnapshot: (snapshot: TimerSnapshot, elapsedMs: number) => void,
  ) {
    this.#timer = timer;
    this.#server = server;
    this.#onSnapshot = onSnapshot;
    this.#fullest = timer.inspect();
    this.#interval = setInterval(this.#sample, SAMPLE_EVERY_MS);
  }

  /** The wheels when most timers were seen in them. */
  get fullest(): TimerSnapshot {
    return this.#fullest;
  }

  get peakRssBytes(): number {
    return this.#peakRssBytes;
  }

  stop(): void {
    clearInterval(this.#interval);
  }

  readonly #sample = (): void => {
    const atMs = performance.now() - this.#startMs;
    if (this.samples.length % SAMPLES_PER_SNAPSHOT === 0) this.#takeSnapshot(atMs);
    this.samples.push({ atMs, requests: this.#server.inFlight, timers: this.#timer.size });
  };

  #takeSnapshot(atMs: number): void {
    const snapshot = this.#timer.inspect();
    if (snapshot.size >= this.#fullest.size) this.#fullest = snapshot;
    this.#peakRssBytes = Math.max(this.#peakRssBytes, process.memoryUsage.rss());
    this.#onSnapshot(snapshot, atMs);
  }
}
