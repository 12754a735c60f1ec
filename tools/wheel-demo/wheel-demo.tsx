import { render, type JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { SystemTimer, type TimerId } from '../../src/timer/system-timer.ts';
import { compact, durationText } from '../../src/dashboard/page/format.ts';
import { Button, Figures } from '../../src/dashboard/page/parts.tsx';
import { WheelView } from '../../src/dashboard/page/wheel-view.tsx';

/*
 * A page of its own, for the documentation: a real timer of this library runs in the reader's browser, and its wheels are drawn as the
 * dashboard draws them. Nothing is simulated, and nothing is requested.
 */

const FRAME_MS = 40;
/** The longest delays that the reader can choose from. */
const SPANS: readonly (readonly [number, string])[] = [
  [5_000, '5 seconds'],
  [60_000, 'a minute'],
  [600_000, '10 minutes'],
];
const STREAM_MS = 100;

/** A timer, and what has become of its timeouts. Coarse ticks, so that an eye can follow the finest wheel. */
class Bench {
  readonly timer = new SystemTimer({ name: 'your browser', tickMs: 50, wheelSize: 20 });
  readonly ids: TimerId[] = [];
  fired = 0;
  cancelled = 0;
  /** How late the last timeouts ran, in milliseconds. */
  readonly lateness: number[] = [];

  add(many: number, spanMs: number): void {
    for (let n = 0; n < many; n++) {
      const delayMs = 50 + spanMs * Math.random() ** 2;
      this.ids.push(this.timer.schedule(delayMs, this.#fire, performance.now() + delayMs));
    }
  }

  cancelAll(): void {
    for (const id of this.ids.splice(0)) if (this.timer.cancel(id)) this.cancelled++;
  }

  readonly #fire = (dueMs: number): void => {
    this.fired++;
    this.lateness.push(performance.now() - dueMs);
    if (this.lateness.length > 200) this.lateness.shift();
  };

  medianLateness(): number {
    return this.lateness.toSorted((a, b) => a - b)[this.lateness.length >> 1] ?? 0;
  }
}

function Demo(): JSX.Element {
  const bench = useRef(new Bench()).current;
  const [spanMs, setSpan] = useState(60_000);
  const [streams, setStreams] = useState(true);
  const [, render] = useState(0);
  useEffect(() => {
    bench.add(400, 60_000);
    const frame = setInterval(() => {
      if (document.visibilityState === 'visible') render(performance.now());
    }, FRAME_MS);
    return () => clearInterval(frame);
  }, []);
  useEffect(() => {
    if (!streams) return undefined;
    const stream = setInterval(() => bench.add(2, spanMs), STREAM_MS);
    return () => clearInterval(stream);
  }, [streams, spanMs]);
  return (
    <main class="demo">
      <h1 class="unseen">A timer in your browser, and its wheels</h1>
      <section class="card">
        <Figures
          list={[
            ['Pending', compact(bench.timer.size)],
            ['Fired', compact(bench.fired)],
            ['Cancelled', compact(bench.cancelled)],
            ['Lateness', durationText(bench.medianLateness()), 'median; a tick is 50 ms'],
          ]}
        />
        <WheelView wheels={bench.timer.inspect()} name="your browser" />
        <div class="list-head demo-tools">
          {[1, 100, 10_000].map((many) => (
            <Button key={many} label={`Add ${compact(many)}`} onClick={() => bench.add(many, spanMs)} />
          ))}
          <label class="inline">
            within
            <select onChange={({ currentTarget }) => setSpan(Number(currentTarget.value))}>
              {SPANS.map(([ms, label]) => (
                <option key={ms} value={ms} selected={ms === spanMs}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          <label class="inline">
            <input
              type="checkbox"
              checked={streams}
              onChange={({ currentTarget }) => setStreams(currentTarget.checked)}
            />
            20 a second more
          </label>
          <span class="spring" />
          <Button label="Cancel all" class="danger quiet" onClick={() => bench.cancelAll()} />
        </div>
      </section>
    </main>
  );
}

const root = document.getElementById('root');
if (root !== null) render(<Demo />, root);
