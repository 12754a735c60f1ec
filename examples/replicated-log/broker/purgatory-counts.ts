import type { CompletionReason, MetricsProvider } from 'escapement';

/** What a purgatory has done so far. */
export type CompletedCounts = Record<CompletionReason, number>;

const ignore = (): void => undefined;

/** A metrics provider that counts in memory: completions by reason, and triggers that were forgotten. */
export class PurgatoryCounts implements MetricsProvider {
  readonly #counts = new Map<string, number>();

  /** Completions of a purgatory. */
  completed(purgatory: string): CompletedCounts {
    const count = (reason: CompletionReason): number =>
      this.#counts.get(nameOf('purgatory_completed_total', { purgatory, reason })) ?? 0;
    return {
      tried: count('tried'),
      forced: count('forced'),
      expired: count('expired'),
      closed: count('closed'),
    };
  }

  /** Operations of a purgatory that expired although their condition held. */
  missedTriggers(purgatory: string): number {
    return this.#counts.get(nameOf('purgatory_missed_triggers_total', { purgatory })) ?? 0;
  }

  counter(name: string, _help: string, labels: Record<string, string> = {}): { inc(by?: number): void } {
    const key = nameOf(name, labels);
    return {
      inc: (by = 1) => {
        this.#counts.set(key, (this.#counts.get(key) ?? 0) + by);
      },
    };
  }

  gauge(): { set(value: number): void } {
    return { set: ignore };
  }

  /** Gauges are read from the purgatories themselves. */
  observableGauge(): { remove(): void } {
    return { remove: ignore };
  }

  histogram(): { observe(value: number): void } {
    return { observe: ignore };
  }
}

function nameOf(counter: string, labels: Record<string, string>): string {
  return [counter, labels['purgatory'], labels['reason']].join(' ');
}
