import type { WriteStream } from 'node:tty';
import cliProgress from 'cli-progress';
import { LiveFrame } from '../../shared/live-frame.ts';
import { formatCount } from '../../shared/number-format.ts';
import type { Progress } from '../run-demo.ts';
import { wheelPicture } from './wheel-picture.ts';

const BAR = {
  barsize: 40,
  barCompleteString: '█'.repeat(40),
  barIncompleteString: '░'.repeat(40),
  barGlue: '',
};
/** Room that a terminal must have beside the picture: status, bar, and the line the cursor rests in. */
const OTHER_LINES = 3;

/** Draws the wheels and the progress bar over and over in the same place of a terminal. */
export class LiveView {
  readonly #stream: WriteStream;
  readonly #durationMs: number;
  readonly #frame: LiveFrame;

  constructor(stream: WriteStream, durationMs: number) {
    this.#stream = stream;
    this.#durationMs = durationMs;
    this.#frame = new LiveFrame(stream);
  }

  readonly draw = (progress: Progress): void => {
    this.#frame.draw([...this.#picture(progress), status(progress), this.#bar(progress.elapsedMs)]);
  };

  /** Wipes the frame, for what is printed next. */
  clear(): void {
    this.#frame.clear();
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
}

function status({ requests, timedOut, snapshot }: Progress): string {
  return `  ${formatCount(requests)} requests, ${formatCount(timedOut)} timed out, ${formatCount(snapshot.size)} timers waiting`;
}
