import { reportTable } from '../../shared/report-table.ts';
import { wrap } from '../../shared/wrap.ts';
import type { DemoResult } from '../demo/demo-result.ts';
import type { Audience } from '../demo/run-demo.ts';
import type { RunLine } from '../service/run-log.ts';
import { resizeImage, type Digest } from '../service/tasks.ts';
import { resultRows } from './result-rows.ts';
import { digestText, runText } from './run-text.ts';

/** Of the further lines of an event. */
const INDENT = ' '.repeat(9);

/** What the example prints: a line for each thing worth telling. */
export class Screen implements Audience {
  readonly #isTellingAll: boolean;
  readonly #startMs = performance.now();

  /** @param isTellingAll - also the images that were done at their first try. */
  constructor(isTellingAll: boolean) {
    this.#isTellingAll = isTellingAll;
  }

  event(text: string): void {
    const seconds = ((performance.now() - this.#startMs) / 1_000).toFixed(1);
    this.say(wrap(`${seconds.padStart(5)} s  ${text}`, INDENT));
  }

  run(line: RunLine): void {
    const isEasy = line.error === undefined && line.retryCount === 0;
    const isWanted = line.type === resizeImage.type && (this.#isTellingAll || !isEasy);
    if (isWanted || line.error !== undefined) this.event(runText(line));
  }

  digest(digest: Digest): void {
    this.event(digestText(digest));
  }

  showResult(result: DemoResult): void {
    this.say(`\n${reportTable(resultRows(result))}`);
  }

  showVerdict(complaints: readonly string[]): void {
    for (const complaint of complaints) this.say(`Self-check FAILED: ${complaint}.`);
    if (complaints.length === 0)
      this.say(
        'Self-check passed: every image came back in all sizes; what was refused was tried again; nothing is left to do.',
      );
  }

  say(text: string): void {
    process.stdout.write(`${wrap(text)}\n`);
  }
}
