import { EscapementError } from '../core/errors.ts';
import { guarded } from '../core/report-uncaught.ts';

/** Names and values that identify a series of a metric. */
export type Labels = Readonly<Record<string, string>>;

/** A value that is read at each scrape. */
interface Reader {
  readonly read: () => number;
  readonly onError: (error: EscapementError) => void;
}

/** The readers of one set of labels. */
interface Series {
  readonly labels: Labels;
  readonly readers: Set<Reader>;
  reported: boolean;
}

/** Property of an object of the metrics library that has the reads of a metric, so that both builds of this package find them. */
export const READS: unique symbol = Symbol.for('escapement.metrics.reads');

/**
 * The series of one observable gauge, each read when it is scraped.
 *
 * Readers of equal labels are added up: two timers of one name are one timer in the metrics, as their counters are one counter. So it
 * does not matter whether a queue is created again before or after the old one is closed.
 */
export class SummedReads {
  readonly #metric: string;
  readonly #endsAtZero: boolean;
  readonly #series = new Map<string, Series>();

  /**
   * @param endsAtZero - whether a series without readers is reported once more, as 0, if it was ever reported: for a library that
   * repeats the last value of a series that is no longer reported.
   */
  constructor(metric: string, endsAtZero: boolean) {
    this.#metric = metric;
    this.#endsAtZero = endsAtZero;
  }

  /** Adds a reader. @returns a function that removes it. */
  add(labels: Labels, reader: Reader): () => void {
    const key = keyOf(labels);
    const series = this.#series.get(key) ?? { labels, readers: new Set(), reported: false };
    this.#series.set(key, series);
    series.readers.add(reader);
    return () => {
      series.readers.delete(reader);
      this.#dropIfDone(key, series);
    };
  }

  /** Reads everything. The series of a reader that throws is missing in this report; no other is. */
  report(observe: (labels: Labels, sum: number) => void): void {
    // A copy, because a reader is user code and may create or close what is measured.
    for (const [key, series] of [...this.#series]) {
      series.reported = series.readers.size > 0;
      const sum = this.#sum(series);
      if (sum === undefined) continue;
      observe(series.labels, sum);
      this.#dropIfDone(key, series);
    }
  }

  /** A reader may have removed the series, and added one of the same labels. */
  #dropIfDone(key: string, series: Series): void {
    if (series.readers.size > 0 || this.#series.get(key) !== series) return;
    if (!this.#endsAtZero || !series.reported) this.#series.delete(key);
  }

  #sum({ labels, readers }: Series): number | undefined {
    let sum: number | undefined = 0;
    for (const reader of [...readers]) {
      const value = this.#read(labels, reader);
      sum = sum === undefined || value === undefined ? undefined : sum + value;
    }
    return sum;
  }

  #read(labels: Labels, { read, onError }: Reader): number | undefined {
    try {
      const value: unknown = read();
      if (typeof value === 'number') return value;
      throw new TypeError(`the value is of type ${typeof value}, not a number`);
    } catch (cause) {
      guarded(() => {
        onError(this.#failure(labels, cause));
      });
      return undefined;
    }
  }

  #failure(labels: Labels, cause: unknown): EscapementError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `metric ${this.#metric}${showLabels(labels)} cannot be read: ${reason}`;
    return new EscapementError('ERR_METRIC_READ', message, { op: 'MetricsProvider.observableGauge', cause });
  }
}

/** Returns the same key for equal labels in any order. As JSON, because a value may contain any separator. */
function keyOf(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function showLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `{${pairs.join(',')}}`;
}
