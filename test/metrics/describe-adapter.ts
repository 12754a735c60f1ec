import { ManualClock, SystemTimer, type EscapementError, type MetricsProvider } from 'escapement';
import { expect, it, vi } from 'vitest';
import { throwing } from '../timer/support/errors.ts';

/** Options that both adapters have. */
interface CommonOptions {
  readonly prefix?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly onError?: (error: EscapementError) => void;
}

/** An adapter, and how a test reads what its library collects. */
export interface Adapter {
  /** Opens a provider; all providers of a test share a registry or a meter. */
  readonly open: (options?: CommonOptions) => MetricsProvider;
  /** Returns the series of a metric, as `name=a: 1`. */
  readonly series: (name: string) => Promise<string[]>;
  /** Returns the number of metrics that exist. */
  readonly count: () => Promise<number>;
  /** Names that its library refuses. */
  readonly wrongNames: readonly string[];
}

/** What every adapter does. */
export function describeAdapter({ open, series, count, wrongNames }: Adapter): void {
  it('every name has the prefix and every metric the labels; a label of the metric itself wins', async () => {
    const labels = { shard: '7', name: 'x' };
    const metrics = open({ prefix: 'shop_', labels });
    labels.shard = 'changed later';
    metrics.counter('jobs_total', 'Jobs.', { name: 'a' });
    metrics.observableGauge('depth', 'Depth.', () => 4);
    expect(await series('shop_jobs_total')).toEqual(['shard=7,name=a: 0']);
    expect(await series('shop_depth')).toEqual(['shard=7,name=x: 4']);
  });

  it('a gauge that cannot be read is missing in the collection, and all others are in it', async () => {
    const onError = vi.fn<(error: EscapementError) => void>();
    const metrics = open({ onError });
    metrics.observableGauge('depth', 'Depth.', throwing(new Error('no')), { name: 'a' });
    metrics.observableGauge('depth', 'Depth.', () => 2, { name: 'b' });
    expect(await series('depth')).toEqual(['name=b: 2']);
    expect(onError.mock.calls.map(([error]) => error.message)).toEqual([
      'metric depth{name="a"} cannot be read: no',
    ]);
    metrics.observableGauge('other', 'Other.', () => 3);
    expect(await series('other')).toEqual([': 3']);
  });

  it('a part that is created again continues the counters and has gauges of its own', async () => {
    const metrics = open();
    for (let round = 1; round <= 3; round++) {
      const clock = new ManualClock();
      const timer = new SystemTimer({ clock, metrics, name: 'a' });
      timer.schedule(1, () => undefined, 0);
      clock.advance(1);
      timer.schedule(1, () => undefined, 0);
      expect(await series('timer_size')).toEqual(['timer=a: 1']);
      expect(await series('timer_tasks_run_total')).toEqual([`timer=a: ${round}`]);
      timer.close();
    }
  });

  it('two parts of one name are added up, in one provider or in two that share a registry', async () => {
    const metrics = open();
    for (const providers of [
      [metrics, metrics],
      [metrics, open()],
    ]) {
      const clock = new ManualClock();
      const timers = providers.map((each) => new SystemTimer({ clock, metrics: each, name: 'a' }));
      for (const timer of timers) timer.schedule(1, () => undefined, 0);
      expect(await series('timer_size')).toEqual(['timer=a: 2']);
      timers[0]?.close();
      expect(await series('timer_size')).toEqual(['timer=a: 1']);
      clock.advance(1);
      timers[1]?.close();
    }
    expect(await series('timer_tasks_run_total')).toEqual(['timer=a: 2']);
  });

  it.each([
    [{ prefix: 7 }, 'options.prefix must be a string. Received 7'],
    [{ labels: { shard: 7 } }, 'options.labels.shard must be a string. Received 7'],
    [{ labels: 'a' }, "options.labels must be an object. Received 'a'"],
    [{ onError: 1 }, 'options.onError must be a function. Received 1'],
  ])('options %o throw an error with the value received', (options, message) =>
    expect(() => open(options as never)).toThrow(message),
  );

  it.each(wrongNames)('the name %j throws a TypeError and creates no metric', async (name) => {
    expect(() => open().counter(name, 'help')).toThrow(
      expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' }),
    );
    expect(await count()).toBe(0);
  });
}
