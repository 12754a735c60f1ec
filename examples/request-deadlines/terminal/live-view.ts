import type { WriteStream } from 'node:tty';
import cliProgress from 'cli-progress';
import { formatCount } from '../number-format.ts';
import type { Progress } from '../run-demo.ts';
import { wheelPicture } from './wheel-picture.ts';

const BAR = {
  barsize: 40,
  barCompleteString: '█'.repeat(40),
  barIncompleteString: '░'.repeat(40),
  barGlue: '',
};
const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
const CLEAR_TO_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
/** Room that a terminal must have beside the picture: status, bar, and the line the cursor rests in. */
const OTHER_LINES = 3;

/** Draws the wheels and the progress bar over and over in the same place of a terminal. */
export class LiveView {
  readonly #stream: WriteStream;
  readonly #durationMs: number;
  #drawnLines = 0;

  constructor(stream: WriteStream, durationMs: number) {
    this.#stream = stream;
    this.#durationMs = durationMs;
    stream.write(HIDE_CURSOR);
  }

  /** Replaces the frame. One write, so that it does not flicker. */
  readonly draw = (progress: Progress): void => {
    const lines = [...this.#picture(progress), status(progress), this.#bar(progress.elapsedMs)];
    this.#replace(lines.map((line) => `${line}${CLEAR_TO_LINE_END}\n`).join(''));
    this.#drawnLines = lines.length;
  };

  /** Wipes the frame, for what is printed next. */
  clear(): void {
    this.#replace(SHOW_CURSOR);
    this.#drawnLines = 0;
  }

  /** Nothing if the terminal is too small: wrapped lines could not be drawn over. */
  #picture({ snapshot }: Progress): string[] {
    const lines = wheelPicture(snapshot, { colours: this.#stream.hasColors(256) });
    const columns = Math.max(0, ...snapshot.levels.map((level) => level.wheelSize + 6));
    const fits = this.#stream.columns > columns && this.#stream.rows > lines.length + OTHER_LINES;
    return fits ? lines : [];
  }

  #bar(elapsedMs: number): string {
    const share = Math.min(elapsedMs / this.#durationMs, 1);
    const seconds = (Math.min(elapsedMs, this.#durationMs) / 1_000).toFixed(1);
    return `  ${cliProgress.Format.BarFormat(share, BAR)} ${seconds} of ${String(this.#durationMs / 1_000)} s`;
  }

  #replace(text: string): void {
    const toTop = this.#drawnLines > 0 ? `\u001b[${this.#drawnLines}F` : '';
    this.#stream.write(toTop + text + CLEAR_BELOW);
  }
}

function status({ requests, timedOut, snapshot }: Progress): string {
  return `  ${formatCount(requests)} requests, ${formatCount(timedOut)} timed out, ${formatCount(snapshot.size)} timers waiting`;
}
