import type { Controller } from '../controller/controller.ts';
import type { News } from '../controller/news.ts';
import type { DemoResult } from '../demo/demo-result.ts';
import { reportTable } from '../../shared/report-table.ts';
import { wrap } from '../../shared/wrap.ts';
import { LiveView } from './live-view.ts';
import { Progress } from './progress.ts';
import { resultRows } from './result-rows.ts';
import { seconds, statusHeader, statusLine } from './status-line.ts';
import { workLine } from './work-line.ts';

const FRAME_MS = 100;
const LINE_MS = 500;

/** Of the further lines of an event. */
const INDENT = ' '.repeat(12);

/** What the example prints: on a terminal the queue as it is, elsewhere a line now and then. */
export class ControllerScreen {
  readonly #isTellingFiles: boolean;
  readonly #startMs = performance.now();
  readonly #progress = new Progress();
  readonly #live = process.stderr.isTTY ? new LiveView(process.stderr) : undefined;
  #interval: NodeJS.Timeout | undefined;
  #hasHeader = false;
  #lastCounts = '';

  /** @param isTellingFiles - whether each file that is worked on is a line, where there is no terminal. */
  constructor(isTellingFiles: boolean) {
    this.#isTellingFiles = isTellingFiles;
  }

  readonly note = (news: News): void => {
    this.#progress.note(news);
    const line = workLine(news, process.stderr.isTTY && process.stderr.hasColors());
    if (line === undefined) return;
    this.#live?.add(`${this.#elapsed()}  ${line}`);
    if (this.#live === undefined && this.#isTellingFiles) this.event(line);
  };

  /** Shows it until `close`. */
  open(controller: Controller): void {
    const show = (): void => {
      if (this.#live === undefined) this.#showLine(controller);
      else this.#live.draw(this.#progress, controller.load);
    };
    this.#interval = setInterval(show, this.#live === undefined ? LINE_MS : FRAME_MS);
  }

  readonly event = (text: string): void => {
    this.say(wrap(`${this.#elapsed()}  ── ${text}`, INDENT));
  };

  showResult(result: DemoResult): void {
    this.say(`\n${reportTable(resultRows(result))}`);
  }

  showVerdict(complaints: readonly string[]): void {
    for (const complaint of complaints) this.say(`Self-check FAILED: ${complaint}.`);
    if (complaints.length === 0)
      this.say(
        'Self-check passed: the output is what the source says, byte for byte; no file was with two workers; what failed waited.',
      );
  }

  say(text: string): void {
    this.#live?.clear();
    process.stdout.write(`${wrap(text)}\n`);
  }

  /** Gives the terminal back as it was. */
  close(): void {
    clearInterval(this.#interval);
    this.#live?.clear();
  }

  /** Nothing if nothing has happened. */
  #showLine({ load }: Controller): void {
    const line = statusLine(performance.now() - this.#startMs, this.#progress, load);
    const counts = statusLine(0, this.#progress, load);
    if (counts === this.#lastCounts) return;
    if (!this.#hasHeader) this.say(statusHeader());
    this.#hasHeader = true;
    this.#lastCounts = counts;
    this.say(line);
  }

  #elapsed(): string {
    return seconds(performance.now() - this.#startMs).padStart(7);
  }
}
