import { SystemTimer, type TimerId, TimerTask } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { INTERNALS } from '../../src/timer/system-timer.ts';
import { HandClock } from '../timer/support/hand-clock.ts';
import { claim } from './actions.ts';
import type { ExecutorKind, TimerSetup } from './timer-actions.ts';
import { compareEntries, type ModelEntry } from './timer-model.ts';

/** Something that was added, scheduled or slept once; `entry` is what the model knows while it waits. */
export interface Subject {
  readonly name: string;
  readonly kind: 'task' | 'callback' | 'sleep';
  readonly script: number;
  /** Where it waits, or waited last. */
  side: Side;
  task?: TimerTask;
  id?: TimerId;
  abort?: AbortController;
  /** How a sleep ended. */
  outcome?: string;
  /** How a sleep must end, once that is known. */
  expected?: string;
}

/** The tasks that one call may run, as they were when it began. */
export interface Pump {
  readonly eligible: ReadonlyMap<Subject, ModelEntry>;
  readonly isClosing: boolean;
  /** Tasks and callbacks that ran; what became of sleeps shows later. */
  ran: number;
}

/** What an executor throws on purpose. */
export const EXECUTOR_ERROR = new Error('executor');

/** A turn that an executor has been given. */
interface Turn {
  readonly run: () => void;
  readonly limit: number;
}

/** One timer, its clock, and the naive list of what waits in it. */
export class Side {
  readonly clock: HandClock;
  readonly timer: SystemTimer;
  readonly setup: TimerSetup;
  readonly waiting = new Map<Subject, ModelEntry>();
  isClosed = false;
  /** The call that runs tasks now. */
  pump: Pump | undefined;
  /** Calls of this step, to judge the sleeps that ended in it. */
  pumps: Pump[] = [];
  /** Sleeps that ended in this step: the timer knows them, the model does not yet. */
  sleepsEnded = 0;
  /** Until when the timer has looked for what is due. */
  caughtUpMs = 0;
  /** The time that the wheels have reached; undefined since the timer was behind, until it has caught up. */
  #wheelsMs: number | undefined;
  /** What the executor has been given and has not run; one at most. */
  turn: Turn | undefined;
  #limit = Infinity;

  constructor(
    setup: TimerSetup,
    startMs: number,
    nowMs: number,
    onError: (error: unknown, task: TimerTask | undefined) => void,
  ) {
    this.setup = setup;
    this.clock = new HandClock(nowMs);
    const { executorKind, movesPerTurn, ...options } = setup;
    const executor = this.#executor(executorKind);
    this.timer = new SystemTimer({
      ...options,
      ...(executor && { executor }),
      ...{ startMs, clock: this.clock, onError },
    });
    const { wheels } = this.timer[INTERNALS]();
    wheels.movesPerTurn = movesPerTurn;
    wheels.startTurn(startMs, true);
    this.#wheelsMs = this.#tickOf(startMs);
  }

  /** Whether something that is due waits in a bucket, because the latest turn has moved all that it may. */
  get isBehind(): boolean {
    return this.timer[INTERNALS]().wheels.isBehind;
  }

  /** The time that the wheels have reached. How far a timer is that was behind, the model does not know. */
  get wheelsMs(): number {
    return this.#wheelsMs ?? this.timer[INTERNALS]().wheels.first.currentTimeMs;
  }

  /**
   * The timer has looked for what is due until now.
   *
   * @param isMove - whether it has moved an entry since: that may have been the one that it could not catch up with.
   */
  catchUp(isMove = false): void {
    this.caughtUpMs = this.clock.nowMs;
    this.#wheelsMs = isMove ? undefined : this.#tickOf(this.caughtUpMs);
  }

  /** Called before everything that may end the state of being behind. */
  noteWhetherBehind(): void {
    if (this.isBehind) this.#wheelsMs = undefined;
  }

  #tickOf(ms: number): number {
    return Math.floor(ms / this.setup.tickMs) * this.setup.tickMs;
  }

  dueBy(nowMs: number): Map<Subject, ModelEntry> {
    return new Map([...this.waiting].filter(([, { dueMs }]) => dueMs <= nowMs));
  }

  /** Runs `call`, in which at most `limit` of what is due may run, and judges what did. */
  pumpWith(limit: number, call: () => number | undefined, catchesUp = true): void {
    if (this.pump !== undefined || this.isClosed) {
      const { size } = this.timer;
      const [outer, ran] = [this.pump, this.pump?.ran];
      this.pump = undefined;
      claim((call() ?? 0) === 0, 'a nested pump, or one after close, ran something');
      this.pump = outer;
      claim(outer?.ran === ran && this.timer.size === size, 'a nested pump changed something');
      return;
    }
    if (catchesUp) this.catchUp();
    this.#limit = limit;
    const due = this.dueBy(this.clock.nowMs);
    if (this.setup.executorKind === 'later') {
      const { size } = this.timer;
      claim((call() ?? 0) === 0 && this.timer.size === size, 'something ran although the executor did not');
      const wasAsked = this.turn !== undefined || this.isBehind;
      claim(due.size <= this.sleepsEnded || wasAsked, 'the executor was not asked');
      return;
    }
    const pump = this.#begin(due, false);
    const returned = call();
    this.pump = undefined;
    this.#judge(pump, limit, returned);
  }

  /** The executor runs what it was given: what was due when the timer last looked. */
  execute(): void {
    const { turn } = this;
    this.turn = undefined;
    if (turn === undefined) return;
    const isIdle = this.pump === undefined && !this.isClosed;
    const outer = this.pump;
    const due = [...this.dueBy(this.caughtUpMs)].filter(([, entry]) => isIdle && this.#isHandedOver(entry));
    const pump = this.#begin(new Map(due), false);
    turn.run();
    this.pump = outer;
    if (isIdle) this.#judge(pump, turn.limit, undefined);
    turn.run();
  }

  /** A task or callback runs. */
  ran(subject: Subject): void {
    const { pump } = this;
    claim(pump !== undefined, `${subject.name} ran outside any pump`);
    const entry = this.waiting.get(subject);
    claim(entry !== undefined, `${subject.name} ran and does not wait`);
    claim(pump.eligible.get(subject) === entry, `${subject.name} was made due by this pump and ran in it`);
    if (!pump.isClosing) this.#checkTime(subject, entry);
    for (const [other, otherEntry] of pump.eligible) {
      if (other.kind === 'sleep' || other === subject || !this.#stillWaits(other, pump)) continue;
      claim(compareEntries(otherEntry, entry) >= 0, `${subject.name} ran before ${other.name}`);
    }
    this.waiting.delete(subject);
    pump.ran++;
    claim(subject.task?.pending !== true, `${subject.name} runs and is pending`);
    claim(this.timer.size <= this.waiting.size - this.sleepsEnded, 'a task counts in size although it runs');
    checkTimer(this.timer);
  }

  close(pending: 'drop' | 'run'): void {
    if (this.isClosed) {
      claim(this.timer.close({ pending }).length === 0, 'a second close returned something');
      return;
    }
    this.isClosed = true;
    const waited = new Map(this.waiting);
    for (const subject of waited.keys()) {
      if (subject.kind !== 'sleep') continue;
      subject.expected ??= 'closed';
      waited.delete(subject);
    }
    this.waiting.clear();
    if (pending === 'run') for (const [subject, entry] of waited) this.waiting.set(subject, entry);
    this.sleepsEnded = 0;
    const outer = this.pump;
    this.#begin(new Map(this.waiting), true);
    const returned = this.timer.close({ pending });
    this.pump = outer;
    claim(this.waiting.size === 0, 'close did not run everything');
    claim(this.timer.size === 0, 'something is left after close');
    this.#checkReturned(returned, waited);
  }

  /** What must hold between two steps, when every promise has settled. */
  check(): void {
    const { timer, waiting, clock, setup } = this;
    this.noteWhetherBehind();
    const { currentTimeMs } = timer[INTERNALS]().wheels.first;
    const areWhereModeled = this.isClosed || currentTimeMs === this.wheelsMs;
    claim(areWhereModeled, `the wheels are at ${currentTimeMs}, and must be at ${this.wheelsMs}`);
    claim(timer.size === waiting.size, `size is ${timer.size} and must be ${waiting.size}`);
    const awaited = [...waiting.values()].filter(
      (entry) => this.turn === undefined || !this.#isHandedOver(entry),
    );
    const mustWake = setup.autoStart && !this.isClosed && awaited.length > 0;
    claim(
      clock.pendingWakeups === (mustWake ? 1 : 0) || this.isBehind,
      `${clock.pendingWakeups} wake-ups are armed for ${awaited.length} tasks`,
    );
    claim(clock.mostArmed <= 1, 'two wake-ups were armed at once');
    const earliestMs = Math.min(...[...waiting.values()].map(({ dueMs }) => dueMs));
    const nextMs = timer.nextExpirationMs() ?? Infinity;
    claim(
      waiting.size > 0 ? nextMs <= earliestMs : nextMs === Infinity,
      `it wakes at ${nextMs} for what is due at ${earliestMs}`,
    );
    const { levels, dueNow, size, delayQueue } = timer.inspect();
    const buckets = levels.flatMap((level) => level.buckets);
    const inBuckets = buckets.reduce((sum, bucket) => sum + bucket.size, 0);
    claim(size === timer.size && inBuckets + dueNow === size, 'the snapshot does not add up');
    claim(delayQueue.length === buckets.length, 'the snapshot lacks a bucket');
    checkTimer(timer);
  }

  /** Whether as much ran as had to; a call in which somebody closed the timer is judged by what is left. */
  #judge(pump: Pump, limit: number, returned: number | undefined): void {
    if (this.isClosed) return;
    const left = [...pump.eligible.keys()].filter((subject) => this.#stillWaits(subject, pump));
    const leftTasks = left.filter(({ kind }) => kind !== 'sleep').length;
    const sleepsRan = this.waiting.size - this.sleepsEnded - this.timer.size;
    // Those that ended earlier in this step are in the list still.
    const leftSleeps = left.length - leftTasks - sleepsRan - this.sleepsEnded;
    claim(sleepsRan >= 0 && leftSleeps >= 0, 'a sleep that is not due ended, or size is wrong');
    const ran = pump.ran + sleepsRan;
    claim(returned === undefined || returned === ran, `it says that ${returned ?? 0} ran, but ${ran} did`);
    claim(ran <= limit, `${ran} ran in a turn of at most ${limit}`);
    const isWhole = ran === limit || leftTasks + leftSleeps === 0;
    claim(isWhole || this.isBehind, 'something that is due did not run');
    this.sleepsEnded += sleepsRan;
  }

  #executor(kind: ExecutorKind): ((run: () => void) => void) | undefined {
    switch (kind) {
      case 'none':
        return undefined;
      case 'twice':
        return (run) => {
          run();
          run();
        };
      case 'throws':
        return () => {
          throw EXECUTOR_ERROR;
        };
      case 'later':
        return (run) => {
          claim(this.turn === undefined, 'the executor was given a second turn');
          this.turn = { run, limit: this.#limit };
        };
    }
  }

  #begin(eligible: ReadonlyMap<Subject, ModelEntry>, isClosing: boolean): Pump {
    const pump: Pump = { eligible, isClosing, ran: 0 };
    this.pump = pump;
    this.pumps.push(pump);
    return pump;
  }

  /** Whether an executor that has been given a turn runs it: an absolute deadline that is past may be in a bucket still. */
  #isHandedOver({ path, isLoose, dueMs }: ModelEntry): boolean {
    return (path.length === 0 && isLoose !== true) || dueMs <= this.wheelsMs;
  }

  #stillWaits(subject: Subject, pump: Pump): boolean {
    return this.waiting.get(subject) === pump.eligible.get(subject);
  }

  #checkTime({ name }: Subject, { deadlineMs, dueMs }: ModelEntry): void {
    const nowMs = this.clock.nowMs;
    claim(nowMs >= dueMs, `${name} ran at ${nowMs}, before its bucket's ${dueMs}`);
    if (this.setup.rounding === 'up') {
      claim(nowMs >= deadlineMs, `${name} ran at ${nowMs}, before ${deadlineMs}`);
    } else {
      claim(nowMs > deadlineMs - this.setup.tickMs, `${name} ran a tick before ${deadlineMs}`);
    }
  }

  #checkReturned(returned: readonly TimerTask[], waited: ReadonlyMap<Subject, ModelEntry>): void {
    const byTask = new Map([...waited].map(([subject, entry]) => [subject.task, entry]));
    byTask.delete(undefined);
    claim(returned.length === byTask.size, `close returned ${returned.length} tasks of ${byTask.size}`);
    const entries = returned.map((task) => byTask.get(task));
    entries.forEach((entry, i) => {
      claim(entry !== undefined, 'close returned a task that did not wait');
      const previous = entries[i - 1];
      claim(
        previous === undefined || compareEntries(previous, entry) <= 0,
        'close returned them out of order',
      );
    });
    claim(new Set(returned).size === returned.length, 'close returned a task twice');
  }
}
