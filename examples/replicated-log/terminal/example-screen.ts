import { reportTable } from '../../shared/report-table.ts';
import { wrap } from '../../shared/wrap.ts';
import type { ExampleResult } from '../example-result.ts';
import type { ExampleOptions } from '../options.ts';
import type { Observer } from '../run-example.ts';
import type { LeaderStatus } from '../wire.ts';
import { resultRows } from './result-rows.ts';
import { seconds, statusHeader, statusLine } from './status-line.ts';

/** Of the further lines of an event. */
const INDENT = ' '.repeat(12);

/** What the example prints: a line for each thing that happens, and one now and then for what waits. */
export class ExampleScreen implements Observer {
  readonly #startMs = performance.now();
  #isHeaderShown = false;

  introduce({ ratePerSecond, durationMs, consumers, partitions }: ExampleOptions): void {
    this.say(
      `A leader and two followers; ${ratePerSecond} produces a second for ${seconds(durationMs)} to ${partitions} partitions, ${consumers} consumers.`,
    );
  }

  event(text: string): void {
    this.say(wrap(`${this.#elapsed()}  ── ${text}`, INDENT));
  }

  status(status: LeaderStatus): void {
    if (!this.#isHeaderShown) this.say(statusHeader());
    this.#isHeaderShown = true;
    this.say(statusLine(performance.now() - this.#startMs, status));
  }

  showResult(result: ExampleResult): void {
    this.say(`\n${reportTable(resultRows(result))}`);
  }

  showVerdict(complaints: readonly string[]): void {
    for (const complaint of complaints) this.say(`Self-check FAILED: ${complaint}.`);
    if (complaints.length === 0)
      this.say(
        'Self-check passed: what was acknowledged is readable once and in order, on enough replicas; nothing waits, nothing runs.',
      );
  }

  say(text: string): void {
    process.stdout.write(`${wrap(text)}\n`);
  }

  #elapsed(): string {
    return seconds(performance.now() - this.#startMs).padStart(7);
  }
}
