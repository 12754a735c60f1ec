import type { DemoResult } from '../demo-result.ts';
import { LiveView } from './live-view.ts';
import { formatCount, formatSpan } from '../../shared/number-format.ts';
import { SERVICE_TIME, type DemoOptions } from '../options.ts';
import { reportTable } from '../../shared/report-table.ts';
import { wrap } from '../../shared/wrap.ts';
import { resultRows } from '../result-rows.ts';
import type { Progress } from '../run-demo.ts';
import { wheelPicture } from './wheel-picture.ts';

const LEGEND = "  ▲ is a wheel's clock: what stands to its right comes next.";
/** Below this share of the asked rate the run says so. */
const RATE_REACHED = 0.95;

/** What the demo prints: the result to standard output, what moves to standard error, and only on a terminal. */
export class DemoScreen {
  readonly #live: LiveView | undefined;

  constructor(options: DemoOptions) {
    this.say(introduction(options));
    this.#live = process.stderr.isTTY ? new LiveView(process.stderr, options.durationMs) : undefined;
  }

  readonly showProgress = (progress: Progress): void => {
    this.#live?.draw(progress);
  };

  showResult(result: DemoResult, complaints: readonly string[]): void {
    this.close();
    this.say(`\nThe wheels at their fullest, ${formatCount(result.peak.size)} timers:\n`);
    this.say(wheelPicture(result.peak, { colours: isColourful() }).join('\n'));
    this.say(LEGEND);
    this.say(`\n${reportTable(resultRows(result))}`);
    for (const remark of remarks(result)) this.say(remark);
    this.say(verdict(result, complaints));
  }

  say(text: string): void {
    process.stdout.write(`${wrap(text)}\n`);
  }

  /** Gives the terminal back as it was. */
  close(): void {
    this.#live?.clear();
  }
}

function isColourful(): boolean {
  return process.stdout.isTTY && process.stdout.hasColors(256);
}

function introduction({ ratePerSecond, connections, durationMs, timeoutMs }: DemoOptions): string {
  return [
    `${formatCount(ratePerSecond)} requests a second from ${formatCount(connections)} connections for ${formatSpan(durationMs)}.`,
    `Each has ${formatSpan(timeoutMs)}; its work takes a lognormal time, median ${formatSpan(SERVICE_TIME.medianMs)}, sigma ${SERVICE_TIME.sigma}.`,
  ].join('\n');
}

function remarks(result: DemoResult): string[] {
  const { isInterrupted, requests, load, options } = result;
  if (isInterrupted) return ['Interrupted: the table shows the run so far.'];
  const asked = (options.ratePerSecond * options.durationMs) / 1_000;
  if (load.unsent === 0 || requests >= RATE_REACHED * asked) return [];
  return [
    `Note: ${formatCount(load.unsent)} requests found no free connection. Raise --connections (now ${formatCount(options.connections)}) or lower --rate.`,
  ];
}

function verdict({ isInterrupted }: DemoResult, complaints: readonly string[]): string {
  const share = isInterrupted ? '' : ', the share that timed out is as expected';
  if (complaints.length === 0) return `Self-check passed: counts add up, nobody was early${share}.`;
  return complaints.map((complaint) => `Self-check FAILED: ${complaint}.`).join('\n');
}
