import type { Status } from '../shipper/progress.ts';
import { LiveView } from './live-view.ts';
import { statusText } from './status-text.ts';

const FRAME_MS = 100;

/** What the shipper tells people, on standard error: the spool as it is on a terminal, elsewhere a line now and then. */
export class ShipperScreen {
  readonly #live = process.stderr.isTTY ? new LiveView(process.stderr) : undefined;
  readonly #lineEveryMs: number;
  #interval: NodeJS.Timeout | undefined;
  #lastLine = '';

  constructor(lineEveryMs: number) {
    this.#lineEveryMs = lineEveryMs;
  }

  /** Shows it until `close`. */
  open(status: () => Status): void {
    const show = (): void => {
      if (this.#live === undefined) this.#showLine(status());
      else this.#live.draw(status());
    };
    show();
    this.#interval = setInterval(show, this.#live === undefined ? this.#lineEveryMs : FRAME_MS);
  }

  readonly say = (text: string): void => {
    this.#live?.clear();
    process.stderr.write(`${text}\n`);
  };

  /** Gives the terminal back as it was. */
  close(): void {
    clearInterval(this.#interval);
    this.#live?.clear();
  }

  /** Nothing if nothing has happened. */
  #showLine(status: Status): void {
    const line = statusText(status);
    if (line !== this.#lastLine) this.say(line);
    this.#lastLine = line;
  }
}
