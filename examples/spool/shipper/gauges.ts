import type { MetricsProvider } from 'escapement';

const ignore = (): void => undefined;

/** A metrics provider that keeps the gauges, for those who want to read them now. */
export class Gauges implements MetricsProvider {
  readonly #reads = new Map<string, () => number>();

  /** 0 if there is no such gauge, or no more. */
  read(name: string): number {
    return this.#reads.get(name)?.() ?? 0;
  }

  observableGauge(name: string, _help: string, read: () => number): { remove(): void } {
    this.#reads.set(name, read);
    return { remove: () => this.#reads.delete(name) };
  }

  counter(): { inc(by?: number): void } {
    return { inc: ignore };
  }

  gauge(): { set(value: number): void } {
    return { set: ignore };
  }

  histogram(): { observe(value: number): void } {
    return { observe: ignore };
  }
}
