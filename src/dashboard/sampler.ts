import type { Clock, ClockTimeout } from '../core/clock.ts';
import { EscapementError } from '../core/errors.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../core/units.ts';
import type { QueueView, ServerView } from '../tasks/http/asynqmon-json.ts';
import { MAX_LIVE_QUEUES, type HistoryJson, type LiveJson, type QueueJson } from './dashboard-json.ts';
import { queueForPage } from './dashboard-views.ts';
import { ALL_QUEUES, History, type Sample } from './history.ts';
import type { RuntimeParts } from './runtime-parts.ts';
import type { TasksSource } from './tasks-source.ts';

/** A read may take at most that share of the time: after one that took 1 s, the next begins 10 s after it began. */
const PAUSE_FACTOR = 10;

/** When a read that has not ended is reported, in milliseconds. */
const SLOW_READ_MS = 3_000;

const RETRY = Buffer.from('retry: 1000\n\n');

/** Spans of the history by their names in the API: how long, and the time between two samples, in milliseconds. */
const SPANS = {
  minutes: { lengthMs: 300 * SECOND_MS, stepMs: SECOND_MS },
  day: { lengthMs: DAY_MS, stepMs: MINUTE_MS },
} as const;

type Span = keyof typeof SPANS;

export function isSpan(word: string): word is Span {
  return Object.hasOwn(SPANS, word);
}

/** Runs that have ended so far. */
interface Totals {
  readonly processed: number;
  readonly failed: number;
}

/** Samples of a span, and what the rates of the next ones are computed from. */
class Chart {
  readonly #history: History;
  readonly #stepMs: number;
  #totals = new Map<string, Totals>();
  #atMs = -Infinity;

  constructor({ lengthMs, stepMs }: { readonly lengthMs: number; readonly stepMs: number }) {
    this.#history = new History(lengthMs / stepMs, MAX_LIVE_QUEUES);
    this.#stepMs = stepMs;
  }

  read(queue: string, sinceMs: number): HistoryJson {
    return this.#history.read(queue, sinceMs);
  }

  /** Adds a sample, if it is time, and returns the rates; none if there was no sample before. */
  add(wallMs: number, infos: readonly QueueView[]): ReadonlyMap<string, Sample> {
    const elapsedMs = wallMs - this.#atMs;
    // A tick may come a little early.
    if (elapsedMs >= 0 && elapsedMs < 0.9 * this.#stepMs) return NO_SAMPLES;
    const isFirst = !(elapsedMs > 0 && elapsedMs < Infinity);
    const before = this.#totals;
    this.#atMs = wallMs;
    this.#totals = new Map(infos.map((info) => [info.queue, totalsOf(info)]));
    if (isFirst) return NO_SAMPLES;
    const samples = new Map(infos.map((info) => [info.queue, sampleOf(info, before, elapsedMs)]));
    samples.set(ALL_QUEUES, sumOf([...samples.values()]));
    this.#history.add(wallMs, samples);
    return samples;
  }
}

const NO_SAMPLES: ReadonlyMap<string, Sample> = new Map();

/**
 * Reads all queues for everyone who watches: once a second while a stream is open, otherwise once a minute, so that the charts have
 * the last day. It begins with the first request, does not keep the process alive, and ends with `close`.
 */
export class Sampler {
  readonly #source: TasksSource | undefined;
  readonly #parts: RuntimeParts;
  readonly #clock: Clock;
  readonly #charts = { minutes: new Chart(SPANS.minutes), day: new Chart(SPANS.day) };
  readonly #waiting = new Set<() => void>();
  #timeout: ClockTimeout | undefined;
  #isClosed = false;
  #streams = 0;
  #isReading = false;
  #nextReadMs = 0;
  #isSlow = false;
  #live: Omit<LiveJson, 'atMs' | 'pendingTimers'> = {
    queues: [],
    queueCount: 0,
    serverCount: 0,
  };
  #event: Uint8Array | undefined;
  #eventMs = -Infinity;

  constructor(source: TasksSource | undefined, parts: RuntimeParts, clock: Clock) {
    this.#source = source;
    this.#parts = parts;
    this.#clock = clock;
  }

  /** Begins with samples, if it has not. */
  start(): void {
    if (this.#timeout === undefined && !this.#isClosed) this.#tick();
  }

  /**
   * Makes the server-sent events of a client. All clients get the same bytes. A client that is slower than the events misses some:
   * the next one that it gets is the latest.
   */
  async *events(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    this.#streams++;
    if (this.#streams === 1) this.#arm(this.#recentEvent === undefined ? 0 : SECOND_MS);
    try {
      let sent: Uint8Array | undefined;
      yield RETRY;
      while (!signal.aborted) {
        const event = this.#recentEvent;
        if (event !== undefined && event !== sent) yield (sent = event);
        else await this.#nextEvent(signal);
      }
    } finally {
      this.#streams--;
    }
  }

  history(queue: string, span: Span): HistoryJson {
    return this.#charts[span].read(queue, this.#clock.wallNow() - SPANS[span].lengthMs);
  }

  close(): void {
    this.#isClosed = true;
    this.#timeout?.cancel();
    for (const end of [...this.#waiting]) end();
  }

  get #recentEvent(): Uint8Array | undefined {
    return this.#clock.now() - this.#eventMs > 2 * SLOW_READ_MS ? undefined : this.#event;
  }

  /** Resolves with the next event, or when the signal fires. */
  #nextEvent(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#waiting.delete(end);
        signal.removeEventListener('abort', end);
        resolve();
      };
      this.#waiting.add(end);
      signal.addEventListener('abort', end);
    });
  }

  #arm(delayMs: number): void {
    this.#timeout?.cancel();
    if (this.#isClosed) return;
    this.#timeout = this.#clock.setTimeout(() => {
      this.#tick();
    }, delayMs);
    this.#timeout.unref();
  }

  /** Publishes also during a read that is reported as slow: a page takes a silent connection for lost. */
  #tick(): void {
    this.#arm(this.#streams > 0 ? SECOND_MS : MINUTE_MS);
    this.#parts.sample();
    const isReadDue = this.#source !== undefined && this.#clock.now() >= this.#nextReadMs;
    if (!this.#isReading && isReadDue) void this.#read(this.#source);
    else if (!this.#isReading || this.#live.unavailable !== undefined) this.#publish();
  }

  async #read(source: TasksSource): Promise<void> {
    const startMs = this.#clock.now();
    this.#isReading = true;
    const slow = this.#clock.setTimeout(() => {
      this.#fail(`no answer for ${SLOW_READ_MS / SECOND_MS} s`);
    }, SLOW_READ_MS);
    slow.unref();
    try {
      const [infos, servers] = await Promise.all([source.queueInfos(), source.servers()]);
      this.#take(infos, servers);
      this.#pauseAfter(startMs);
    } catch (error) {
      this.#fail(error instanceof EscapementError ? error.message : 'the tasks cannot be read');
    } finally {
      slow.cancel();
      this.#isReading = false;
    }
  }

  /** A single slow read has waited for a broker that was away: the next one does not wait for that. */
  #pauseAfter(startMs: number): void {
    const tookMs = this.#clock.now() - startMs;
    const wasSlow = this.#isSlow;
    this.#isSlow = tookMs >= SLOW_READ_MS;
    this.#nextReadMs = this.#isSlow && !wasSlow ? 0 : startMs + PAUSE_FACTOR * tookMs;
  }

  #take(infos: readonly QueueView[], servers: readonly ServerView[]): void {
    const wallMs = this.#clock.wallNow();
    this.#charts.day.add(wallMs, infos);
    const samples = this.#charts.minutes.add(wallMs, infos);
    const shown = infos.length <= MAX_LIVE_QUEUES ? infos : largestOf(infos);
    this.#live = {
      queues: shown.map((info) => queueForPage(info, servers, ratesOf(samples.get(info.queue)))),
      queueCount: infos.length,
      serverCount: servers.length,
    };
    this.#publish();
  }

  /** The queues stay as they were. */
  #fail(unavailable: string): void {
    this.#live = { ...this.#live, unavailable };
    this.#publish();
  }

  #publish(): void {
    if (this.#isClosed) return;
    const live: LiveJson = {
      ...{ atMs: this.#clock.wallNow(), ...this.#live },
      pendingTimers: this.#parts.pendingTimers,
    };
    this.#eventMs = this.#clock.now();
    this.#event = Buffer.from(`data: ${JSON.stringify(live)}\n\n`);
    for (const end of [...this.#waiting]) end();
  }
}

function ratesOf(sample: Sample | undefined): Pick<QueueJson, 'processedPerS' | 'failedPerS'> {
  return sample === undefined ? {} : { processedPerS: sample.processedPerS, failedPerS: sample.failedPerS };
}

/** Returns the queues with the most tasks, by name. */
function largestOf(infos: readonly QueueView[]): readonly QueueView[] {
  const largest = [...infos].sort((a, b) => b.size - a.size).slice(0, MAX_LIVE_QUEUES);
  return largest.sort((a, b) => (a.queue < b.queue ? -1 : 1));
}

/** Over the HTTP API only the counts of today are known, which begin anew at midnight. */
function totalsOf({ processed, failed, processedTotal, failedTotal }: QueueView): Totals {
  return { processed: processedTotal ?? processed, failed: failedTotal ?? failed };
}

function sampleOf(info: QueueView, before: ReadonlyMap<string, Totals>, elapsedMs: number): Sample {
  const now = totalsOf(info);
  const then = before.get(info.queue) ?? now;
  const perS = (count: number): number => (Math.max(0, count) * SECOND_MS) / elapsedMs;
  return {
    processedPerS: perS(now.processed - then.processed),
    failedPerS: perS(now.failed - then.failed),
    ...{ pending: info.pending, active: info.active, latencyMs: info.latencyMs },
  };
}

/** The latency of all queues together is the longest one. */
function sumOf(samples: readonly Sample[]): Sample {
  const sum = { processedPerS: 0, failedPerS: 0, pending: 0, active: 0, latencyMs: 0 };
  for (const { processedPerS, failedPerS, pending, active, latencyMs } of samples) {
    sum.processedPerS += processedPerS;
    sum.failedPerS += failedPerS;
    sum.pending += pending;
    sum.active += active;
    sum.latencyMs = Math.max(sum.latencyMs, latencyMs);
  }
  return sum;
}
