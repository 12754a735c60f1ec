import { formatCount } from '../../shared/number-format.ts';
import { reportTable } from '../../shared/report-table.ts';
import { wrap } from '../../shared/wrap.ts';
import type { DemoResult } from '../demo/demo-result.ts';
import type { Audience } from '../demo/stage.ts';
import type { DemoOptions } from '../options.ts';
import type { Status } from '../shipper/progress.ts';
import { LiveView } from './live-view.ts';
import { resultRows } from './result-rows.ts';
import { seconds, statusHeader, statusLine } from './status-line.ts';

const LINE_MS = 500;

/** Of the further lines of an event. */
const INDENT = ' '.repeat(12);

/** What the demonstration prints: on a terminal the spool as it is, elsewhere a line now and then. */
export class DemoScreen implements Audience {
  readonly #startMs = performance.now();
  readonly #live = process.stderr.isTTY ? new LiveView(process.stderr) : undefined;
  #lastLineMs = -Infinity;

  introduce({ ratePerSecond, durationMs, durability }: DemoOptions): void {
    this.say(
      `A producer of ${formatCount(ratePerSecond)} lines a second, a shipper with a spool of durability '${durability}', and a collector; ${seconds(durationMs)}.`,
    );
  }

  status(status: Status): void {
    if (this.#live === undefined) this.#showLine(status);
    else this.#live.draw(status);
  }

  event(text: string): void {
    this.say(wrap(`${this.#elapsed()}  ── ${text}`, INDENT));
  }

  showResult(result: DemoResult): void {
    this.say(`\n${reportTable(resultRows(result))}`);
  }

  showVerdict(complaints: readonly string[]): void {
    for (const complaint of complaints) this.say(`Self-check FAILED: ${complaint}.`);
    if (complaints.length === 0)
      this.say(
        'Self-check passed: every line arrived, in order; what came twice came around a kill; the spool is empty, nothing runs.',
      );
  }

  say(text: string): void {
    this.#live?.clear();
    process.stdout.write(`${wrap(text)}\n`);
  }

  /** Gives the terminal back as it was. */
  close(): void {
    this.#live?.clear();
  }

  #showLine(status: Status): void {
    const nowMs = performance.now();
    if (nowMs - this.#lastLineMs < LINE_MS) return;
    if (this.#lastLineMs === -Infinity) this.say(statusHeader());
    this.#lastLineMs = nowMs;
    this.say(statusLine(nowMs - this.#startMs, status));
  }

  #elapsed(): string {
    return seconds(performance.now() - this.#startMs).padStart(7);
  }
}
