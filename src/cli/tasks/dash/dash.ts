import { emitKeypressEvents, type Key } from 'node:readline';
import { Option } from 'commander';
import stringWidth from 'string-width';
import { systemClock, type ClockTimeout } from '../../../core/clock.ts';
import { CoalescedRun } from '../../../core/coalesced-run.ts';
import { unlessAborted } from '../../../core/signal-options.ts';
import { CommandError, describeError } from '../../command-error.ts';
import { goDuration } from '../../options.ts';
import type { Output } from '../../terminal/output.ts';
import { EXIT_CODES } from '../../terminal/terminal.ts';
import { harmless } from '../../terminal/text.ts';
import { tableOf, withTarget, type Invocation, type Run, type TasksCommand } from '../run.ts';
import { queueColumns } from '../show.ts';
import {
  FIRST_STATE,
  NO_DATA,
  press,
  readDash,
  settle,
  showsSame,
  type DashData,
  type DashState,
} from './dash-state.ts';
import { type DashFrame, dashLines, type DashStatus, type Line, rowsThatFit } from './dash-view.ts';

/** The same as in asynq's command. */
const DEFAULT_REFRESH_MS = 8_000;
const MIN_REFRESH_MS = 1_000;

const HELP = `
Keys: j, k or the arrows select a row; enter opens it; h, l select a state; n, p
a page; q or escape goes back, and quits from the list of queues; ? shows help;
ctrl-c quits.`;

interface DashOptions {
  readonly refresh: number;
  readonly once?: boolean;
  readonly path?: string;
}

export function addDash(part: TasksCommand): void {
  const refresh = goDuration(MIN_REFRESH_MS);
  part
    .command('dash')
    .description('watch queues and tasks')
    .addOption(
      new Option('--refresh <duration>', 'how often to read them, at least 1s')
        .argParser(refresh)
        .default(DEFAULT_REFRESH_MS, '8s'),
    )
    .option('--once', 'print the queues once')
    .addHelpText('after', HELP)
    .calls(dash);
}

/** Checks everything before it connects. */
async function dash(call: Invocation<DashOptions>): Promise<void> {
  const { terminal, keyboard, options, isJson } = call;
  if (isJson) throw new CommandError('dash has no --json; use stats --json');
  if (options.once === true) return withTarget(call, 'read', queuesOnce);
  if (options.path !== undefined) {
    throw new CommandError('nothing changes in a folder that no process has open; --once prints its queues');
  }
  if (!terminal.out.isTerminal || !keyboard.isTTY) {
    throw new CommandError('dash needs a terminal; --once prints the queues once');
  }
  await withTarget(call, 'read', watch);
}

async function watch(run: Run<DashOptions>): Promise<undefined> {
  const { terminal } = run;
  const running = new Dash(run);
  const terminate = (): void => {
    terminal.exitCode = EXIT_CODES.terminated;
    running.stop();
  };
  process.once('SIGTERM', terminate).once('SIGHUP', terminate);
  try {
    await running.run();
  } finally {
    process.off('SIGTERM', terminate).off('SIGHUP', terminate);
  }
}

async function queuesOnce(run: Run<DashOptions>): Promise<undefined> {
  const { target, now, terminal } = run;
  const data = { ...NO_DATA, queues: await target.queueInfos() };
  const nowMs = now();
  const frame: DashFrame = {
    ...{ name: target.name, isReading: false, error: undefined },
    ...{ readAtMs: nowMs, nowMs, height: Infinity, width: Infinity },
  };
  const [title = '', ...list] = dashLines({ ...FIRST_STATE, row: -1 }, data, frame)
    .slice(0, -2)
    .map(({ text }) => text);
  const fits = list.every((line) => stringWidth(line) <= terminal.out.width);
  const lines = fits ? list : ['', tableOf(run, queueColumns(data.queues), data.queues)];
  await terminal.out.print(title, ...lines);
}

/** The live view: reads periodically, and when a key selects other data. */
class Dash {
  readonly #run: Run<DashOptions>;
  readonly #screen: Screen;
  #state: DashState = FIRST_STATE;
  #data: DashData = NO_DATA;
  #status: DashStatus;
  #next: ClockTimeout | undefined;
  /** Reads one at a time: keys may come faster than responses. */
  readonly #reads = new CoalescedRun(() => this.#read());
  #isOver = false;
  #end: (error?: Error) => void = () => undefined;

  constructor(run: Run<DashOptions>) {
    this.#run = run;
    this.#screen = new Screen(run.terminal.out);
    this.#status = { name: run.target.name, isReading: true, error: undefined, readAtMs: undefined };
  }

  /** Resolves when the user quits. The screen is restored in any case. */
  async run(): Promise<void> {
    const { keyboard, terminal } = this.#run;
    const { stream } = terminal.out;
    const ended = new Promise<void>((resolve, reject) => {
      this.#end = (error) => {
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    emitKeypressEvents(keyboard);
    try {
      await this.#screen.enter();
      keyboard.setRawMode(true).on('keypress', this.#onKey).on('end', this.stop).resume();
      stream.on('resize', this.#draw);
      this.#reads.trigger();
      await unlessAborted(terminal.signal, ended);
    } finally {
      this.#isOver = true;
      this.#next?.cancel();
      stream.off?.('resize', this.#draw);
      keyboard.off('keypress', this.#onKey).off('end', this.stop).setRawMode(false).pause();
      await this.#screen.leave();
    }
  }

  readonly stop = (): void => {
    this.#end();
  };

  readonly #onKey = (character: string | undefined, { name, ctrl }: Key): void => {
    const key = ctrl === true ? `ctrl-${name ?? ''}` : (name ?? character ?? '');
    const before = this.#state;
    this.#state = press(before, key, this.#data);
    if (this.#state.isOver) this.#end();
    else if (showsSame(before, this.#state)) this.#draw();
    else this.#showOther();
  };

  /** Keeps the queues, which have the counts of the one that is shown. */
  #showOther(): void {
    this.#data = { ...NO_DATA, queues: this.#data.queues };
    this.#status = { ...this.#status, isReading: true };
    this.#draw();
    this.#reads.trigger();
  }

  async #read(): Promise<void> {
    if (this.#isOver) return;
    this.#next?.cancel();
    const before = this.#state;
    const outcome = await this.#attempt();
    // If the user has selected other data meanwhile, they are read next.
    if (showsSame(before, this.#state)) this.#take(outcome);
  }

  async #attempt(): Promise<DashData | string> {
    try {
      return await readDash(this.#run.target, this.#state, rowsThatFit(this.#screen.height));
    } catch (error) {
      return describeError(error);
    }
  }

  #take(outcome: DashData | string): void {
    if (this.#isOver) return;
    if (typeof outcome === 'string') this.#status = { ...this.#status, isReading: false, error: outcome };
    else {
      const readAtMs = this.#run.now();
      this.#status = { ...this.#status, isReading: false, error: undefined, readAtMs };
      this.#data = this.#state.taskId === undefined ? outcome : { ...outcome, queues: this.#data.queues };
      this.#state = settle(this.#state, outcome);
    }
    this.#draw();
    // The host's own setTimeout would take more than 24 days for 1 ms.
    this.#next = systemClock.setTimeout(() => {
      this.#reads.trigger();
    }, this.#run.options.refresh);
  }

  readonly #draw = (): void => {
    const { height } = this.#screen;
    const { width } = this.#run.terminal.out;
    const frame = { ...this.#status, nowMs: this.#run.now(), height, width };
    this.#screen.draw(dashLines(this.#state, this.#data, frame)).catch(this.#end);
  };
}

/** Switches to the alternate screen, hides the cursor, and cuts long lines off. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_REST = '\u001b[J';

/** Rows of a terminal that does not report its size, or 0. */
const DEFAULT_ROWS = 24;

/** The whole terminal, between `enter` and `leave`. */
class Screen {
  readonly #out: Output;
  #isTaken = false;

  constructor(out: Output) {
    this.#out = out;
  }

  get height(): number {
    const { rows = 0 } = this.#out.stream;
    return rows > 0 ? rows : DEFAULT_ROWS;
  }

  enter(): Promise<void> {
    this.#isTaken = true;
    // The terminal must be usable again, however the process ends.
    process.once('exit', this.#leaveAtOnce);
    return this.#write(ENTER);
  }

  draw(lines: readonly Line[]): Promise<void> {
    if (!this.#isTaken) return Promise.resolve();
    const painted = lines.map(({ text, style }) =>
      style === undefined ? harmless(text) : this.#out.paint(style, harmless(text)),
    );
    return this.#write(`${HOME}${painted.map((line) => line + CLEAR_LINE).join('\r\n')}${CLEAR_REST}`);
  }

  /** Idempotent. */
  async leave(): Promise<void> {
    if (!this.#isTaken) return;
    this.#isTaken = false;
    process.off('exit', this.#leaveAtOnce);
    await this.#write(LEAVE);
  }

  readonly #leaveAtOnce = (): void => {
    if (this.#isTaken) this.#out.stream.write(LEAVE, () => undefined);
  };

  async #write(text: string): Promise<void> {
    await this.#out.add(Buffer.from(text));
    await this.#out.flush();
  }
}
