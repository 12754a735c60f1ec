import { emitKeypressEvents, type Key } from 'node:readline';
import { describeError } from '../../command-error.ts';
import type { Surroundings } from '../run.ts';
import type { TasksTarget } from '../target/tasks-target.ts';
import { FIRST_STATE, NO_DATA, press, settle, type DashData, type DashState } from './dash-state.ts';
import { dashLines, roomFor } from './dash-view.ts';
import { readDash, showsSame } from './read-dash.ts';
import { Screen } from './screen.ts';

/** The live view: reads again and again, and whenever a key shows something else. */
export class Dash {
  readonly #surroundings: Surroundings;
  readonly #target: TasksTarget;
  readonly #refreshMs: number;
  readonly #screen: Screen;
  #state: DashState = FIRST_STATE;
  #data: DashData = NO_DATA;
  #isReading = true;
  #error: string | undefined;
  #readAtMs: number | undefined;
  #next: NodeJS.Timeout | undefined;
  #asked = 0;
  #isAsking = false;
  #isOver = false;
  #end: (error?: Error) => void = () => undefined;

  constructor(surroundings: Surroundings, target: TasksTarget, refreshMs: number) {
    this.#surroundings = surroundings;
    this.#target = target;
    this.#refreshMs = refreshMs;
    this.#screen = new Screen(surroundings.terminal.out);
  }

  /** Until somebody ends it. The screen is as it was before, whatever happens. */
  async run(): Promise<void> {
    const { keyboard, terminal } = this.#surroundings;
    const { stream } = terminal.out;
    const ended = new Promise<void>((resolve, reject) => {
      this.#end = (error) => {
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    const abort = (): void => {
      this.#end(terminal.signal.reason as Error);
    };
    emitKeypressEvents(keyboard);
    try {
      await this.#screen.enter();
      keyboard.setRawMode(true).on('keypress', this.#onKey).on('end', this.#onEnd).resume();
      stream.on('resize', this.#onResize);
      terminal.signal.addEventListener('abort', abort, { once: true });
      this.#ask();
      await ended;
    } finally {
      this.#isOver = true;
      clearTimeout(this.#next);
      terminal.signal.removeEventListener('abort', abort);
      stream.off?.('resize', this.#onResize);
      keyboard.off('keypress', this.#onKey).off('end', this.#onEnd).setRawMode(false).pause();
      await this.#screen.leave();
    }
  }

  /** Ends it, as a key does. */
  stop(): void {
    this.#end();
  }

  readonly #onKey = (character: string | undefined, { name, ctrl }: Key): void => {
    const key = ctrl === true ? `ctrl-${name ?? ''}` : (name ?? character ?? '');
    const before = this.#state;
    this.#state = press(before, key, this.#data);
    if (this.#state.isOver) this.#end();
    else if (showsSame(before, this.#state)) this.#draw();
    else this.#showOther();
  };

  readonly #onResize = (): void => {
    this.#draw();
  };

  readonly #onEnd = (): void => {
    this.#end();
  };

  /** The queues are kept: the numbers of the one that is shown are among them. */
  #showOther(): void {
    this.#data = { ...NO_DATA, queues: this.#data.queues };
    this.#isReading = true;
    this.#draw();
    this.#ask();
  }

  /** One answer is waited for at a time: keys may come faster than answers. */
  #ask(): void {
    this.#asked++;
    if (this.#isAsking) return;
    this.#isAsking = true;
    void this.#read().finally(() => {
      this.#isAsking = false;
    });
  }

  async #read(): Promise<void> {
    while (!this.#isOver) {
      const asked = this.#asked;
      clearTimeout(this.#next);
      const outcome = await this.#attempt();
      if (asked === this.#asked) {
        this.#take(outcome);
        return;
      } // else something else is shown by now
    }
  }

  async #attempt(): Promise<DashData | string> {
    try {
      return await readDash(this.#target, this.#state, roomFor(this.#screen.height));
    } catch (error) {
      return describeError(error);
    }
  }

  #take(outcome: DashData | string): void {
    if (this.#isOver) return;
    this.#isReading = false;
    if (typeof outcome === 'string') this.#error = outcome;
    else this.#show(outcome);
    this.#draw();
    this.#next = setTimeout(() => {
      this.#ask();
    }, this.#refreshMs);
  }

  #show(data: DashData): void {
    this.#data = this.#state.taskId === undefined ? data : { ...data, queues: this.#data.queues };
    this.#error = undefined;
    this.#readAtMs = this.#surroundings.now();
    this.#state = settle(this.#state, data);
  }

  #draw(): void {
    const frame = {
      name: this.#target.name,
      isReading: this.#isReading,
      error: this.#error,
      readAtMs: this.#readAtMs,
      nowMs: this.#surroundings.now(),
      height: this.#screen.height,
    };
    this.#screen.draw(dashLines(this.#state, this.#data, frame)).catch(this.#end);
  }
}
