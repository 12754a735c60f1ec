import { EscapementError, type SystemTimer, TimerTask } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { claim } from './actions.ts';
import type { Action, Delay, Scenario, Which } from './timer-actions.ts';
import { INTERNALS } from '../../src/timer/system-timer.ts';
import { placeAtInModel, placeInModel, placeLoosely } from './timer-model.ts';
import { EXECUTOR_ERROR, Side, type Subject } from './timer-side.ts';

/** Virtual time stays below this, so that no deadline of an ordinary delay comes near the horizon. */
const LATEST_MS = 2 ** 50;
/** How many scripts run in a world: tasks that add themselves have an end. */
const SCRIPTS = 150;

class ModelTask extends TimerTask {
  readonly #onRun: () => void;

  constructor(delayMs: number, onRun: () => void) {
    super(delayMs);
    this.#onRun = onRun;
  }

  override run(): void {
    this.#onRun();
  }
}

/** What a script throws on purpose. */
class Deliberate extends Error {
  readonly subject: Subject | undefined;

  constructor(subject: Subject | undefined) {
    super('deliberate');
    this.subject = subject;
  }
}

/**
 * Two timers on one time, and a model of both. Every action is done to the timer and to the model, every run of
 * a task is judged when it happens, and everything is compared after each step.
 */
export class TimerWorld {
  readonly #scenario: Scenario;
  readonly #sides: readonly [Side, Side];
  readonly #subjects: Subject[] = [];
  /** Promises of this step with the answers they must give; undefined where the contract leaves it open. */
  readonly #answers: { readonly promise: Promise<boolean>; readonly expected: boolean | undefined }[] = [];
  /** The tasks that run now, innermost last. */
  readonly #running: Subject[] = [];
  #failure: unknown;
  #serial = 0;
  #scriptsLeft = SCRIPTS;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    const { startMs, idleMs, setups } = scenario;
    const onError = (error: unknown, task: TimerTask | undefined): void => {
      if (error instanceof Deliberate && error.subject?.task === task) return;
      if (error === EXECUTOR_ERROR && task === undefined) return;
      this.#failure ??= error;
    };
    const makeSide = (which: Which): Side => new Side(setups[which], startMs, startMs + idleMs, onError);
    this.#sides = [makeSide(0), makeSide(1)];
  }

  async run(): Promise<void> {
    for (const step of this.#scenario.steps) {
      await this.#step(() => this.#do(step));
    }
    await this.#drain();
    for (const side of this.#sides) {
      await this.#step(() => side.close('drop'));
    }
  }

  /** One step from outside, then everything must fit. */
  async #step(action: () => void): Promise<void> {
    action();
    for (const { promise, expected } of this.#answers.splice(0)) {
      const answer = await promise;
      claim(expected === undefined || answer === expected, `advanceClock said ${String(answer)}`);
    }
    // The longest chain of promise jobs from a sleep to its outcome.
    for (let i = 0; i < 3; i++) await Promise.resolve();
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- whatever it was, it is the failure
    if (this.#failure !== undefined) throw this.#failure;
    this.#judgeSleeps();
    for (const side of this.#sides) side.check();
    for (const subject of this.#subjects) {
      const { task, side } = subject;
      if (task === undefined) continue;
      const waits = side.waiting.has(subject);
      claim(task.pending === waits, `a task says pending is ${String(task.pending)}`);
      claim(!(task.pending && task.isCancelled), 'a task is pending and cancelled');
    }
  }

  /** Runs everything that an ordinary clock would live to see. */
  async #drain(): Promise<void> {
    for (const side of this.#sides) {
      for (let turn = 0; turn < 5_000 && side.waiting.size > 0; turn++) {
        const dueMs = Math.min(...[...side.waiting.values()].map((entry) => entry.dueMs));
        if (dueMs > LATEST_MS) break;
        this.#pass(Math.max(0, dueMs - side.clock.nowMs));
        await this.#step(() => {
          this.#poll(side);
          side.execute();
        });
      }
      claim(
        [...side.waiting.values()].every(({ dueMs }) => dueMs > LATEST_MS),
        'something never ran',
      );
    }
  }

  #do(action: Action): void {
    for (const side of this.#sides) side.noteWhetherBehind();
    switch (action.kind) {
      case 'add':
      case 'schedule':
      case 'sleep':
        this.#enter(action.kind, this.#sides[action.on], action.delay, action.script, action.isAbsolute);
        return;
      case 'cancel':
        this.#cancel(this.#pick(action.pick));
        return;
      case 'move':
        this.#move(this.#pick(action.pick), this.#sides[action.on], action.delay, action.isAbsolute);
        return;
      case 'poll':
        this.#poll(this.#sides[action.on]);
        return;
      case 'advanceClock':
        this.#advanceClock(this.#sides[action.on]);
        return;
      case 'fire':
        this.#fire(this.#sides[action.on]);
        return;
      case 'next': {
        const side = this.#sides[action.on];
        this.#pass(Math.max(0, (side.timer.nextExpirationMs() ?? 0) - side.clock.nowMs));
        this.#fire(side);
        return;
      }
      case 'execute':
        this.#sides[action.on].execute();
        return;
      case 'pass':
        this.#pass(action.ms);
        return;
      case 'close':
        this.#sides[action.on].close(action.pending);
        return;
      case 'throw':
        if (this.#running.length > 0) throw new Deliberate(this.#running.at(-1));
    }
  }

  #pick(pick: number): Subject | undefined {
    return this.#subjects[pick % Math.max(1, this.#subjects.length)];
  }

  #delayMs(side: Side, delay: Delay): number {
    if (typeof delay === 'number') return delay;
    return side.setup.tickMs * side.setup.wheelSize ** delay.level + delay.deltaMs;
  }

  #place(subject: Subject, side: Side, delayMs: number): void {
    const place = side.isBehind ? placeLoosely : placeInModel;
    const entry = place(side.setup, delayMs, side.clock.nowMs, this.#serial++);
    const isMove = side.waiting.has(subject);
    subject.side.waiting.delete(subject);
    subject.side = side;
    side.waiting.set(subject, entry);
    side.catchUp(isMove);
  }

  /** An absolute deadline is placed where the wheels are. */
  #placeAt(subject: Subject, side: Side, deadlineMs: number): void {
    const { wheelsMs } = side;
    const entry = placeAtInModel(side.setup, deadlineMs, wheelsMs, this.#serial++);
    subject.side.waiting.delete(subject);
    subject.side = side;
    // The due queue is due since its first entry, which may have read the clock after the wheels last advanced.
    const { due } = side.timer[INTERNALS]().wheels;
    const dueMs = entry.path.length === 0 ? Math.max(wheelsMs, due.list.expirationMs) : entry.dueMs;
    side.waiting.set(subject, side.isBehind ? { ...entry, isLoose: true } : { ...entry, dueMs });
  }

  /**
   * Does something with an absolute deadline: the clock is read, and the wheels catch up, only if a wake-up is to be armed or moved.
   *
   * @param isNew - whether the entry is new in the timer: it is not moved.
   */
  #withDeadline<R>(side: Side, isNew: boolean, action: () => R): R {
    const { clock, setup, pump, isClosed } = side;
    const { readings, pendingWakeups, delaysMs } = clock;
    const armed = delaysMs.length;
    if (isNew && setup.autoStart && pendingWakeups === 0 && pump === undefined && !isClosed) side.catchUp();
    const result = action();
    const hasMoved = delaysMs.length !== armed || clock.pendingWakeups !== pendingWakeups;
    // While an executor has a turn, what is due at once needs no wake-up, as turns out after the reading.
    const mayRead = hasMoved || side.turn !== undefined;
    claim(mayRead || clock.readings === readings, 'the clock was read although the wake-up did not move');
    return result;
  }

  #enter(
    kind: 'add' | 'schedule' | 'sleep',
    side: Side,
    delay: Delay,
    script: number,
    isAbsolute: boolean,
  ): void {
    const delayMs = this.#delayMs(side, delay);
    const deadlineMs = side.clock.nowMs + delayMs;
    const name = `${kind}${isAbsolute ? 'At' : ''} ${this.#subjects.length} of ${delayMs} ms`;
    const subject: Subject = {
      name,
      kind: kind === 'add' ? 'task' : kind === 'schedule' ? 'callback' : 'sleep',
      script,
      side,
    };
    this.#subjects.push(subject);
    if (kind === 'sleep') {
      this.#sleep(subject, delayMs);
      return;
    }
    const add = (): void => {
      if (kind === 'schedule') {
        subject.id = isAbsolute
          ? side.timer.scheduleAt(deadlineMs, this.#callback, subject)
          : side.timer.schedule(delayMs, this.#callback, subject);
      } else {
        subject.task ??= new ModelTask(delayMs, () => this.#callback(subject));
        side.timer.add(subject.task, isAbsolute ? deadlineMs : undefined);
      }
    };
    const act = isAbsolute ? (): void => this.#withDeadline(side, true, add) : add;
    if (!this.#refusesOnlyWhenClosed(side, act)) return;
    if (isAbsolute) this.#placeAt(subject, side, deadlineMs);
    else this.#place(subject, side, delayMs);
  }

  #sleep(subject: Subject, delayMs: number): void {
    const { side } = subject;
    subject.abort = new AbortController();
    const { signal } = subject.abort;
    side.timer.sleep(delayMs, subject, { signal }).then(
      (value) => {
        subject.outcome = value === subject ? 'slept' : 'wrong value';
      },
      (reason: unknown) => {
        subject.outcome =
          reason === signal.reason
            ? 'aborted'
            : reason instanceof EscapementError
              ? 'closed'
              : String(reason);
      },
    );
    if (side.isClosed) subject.expected = 'closed';
    else this.#place(subject, side, delayMs);
  }

  /** @returns whether it was done. */
  #refusesOnlyWhenClosed(side: Side, add: () => void): boolean {
    try {
      add();
    } catch (error) {
      const isClosed = error instanceof EscapementError && error.code === 'ERR_TIMER_CLOSED';
      claim(isClosed && side.isClosed, `add failed: ${String(error)}`);
      return false;
    }
    claim(!side.isClosed, 'a closed timer took a task');
    return true;
  }

  #cancel(subject: Subject | undefined): void {
    if (subject === undefined) return;
    const { side, task, id, abort } = subject;
    const waits = side.waiting.has(subject);
    if (abort !== undefined) {
      this.#abort(subject, abort);
      return;
    }
    if (task !== undefined) {
      claim(task.cancel() === waits, `cancel of ${subject.name} must be ${String(waits)}`);
      claim(!waits || task.isCancelled, `${subject.name} is not cancelled`);
    } else if (id !== undefined) {
      const other = this.#sides[side === this.#sides[0] ? 1 : 0];
      claim(!other.timer.cancel(id), `${subject.name} was found in the other timer`);
      claim(side.timer.cancel(id) === waits, `cancel of ${subject.name} must be ${String(waits)}`);
    }
    side.waiting.delete(subject);
  }

  /** A sleep that a pump of this step may have ended is left alone: its end shows only later. */
  #abort(subject: Subject, abort: AbortController): void {
    const { side } = subject;
    if (side.pumps.some(({ eligible }) => eligible.has(subject))) return;
    if (side.waiting.delete(subject)) subject.expected = 'aborted';
    abort.abort(new Error('aborted'));
  }

  #move(subject: Subject | undefined, to: Side, delay: Delay, isAbsolute: boolean): void {
    if (subject === undefined) return;
    const { side, task, id } = subject;
    if (task !== undefined) {
      const deadlineMs = to.clock.nowMs + this.#delayMs(to, delay);
      const isNew = !to.waiting.has(subject);
      const add = isAbsolute
        ? (): void => this.#withDeadline(to, isNew, () => to.timer.add(task, deadlineMs))
        : (): void => to.timer.add(task);
      if (!this.#refusesOnlyWhenClosed(to, add)) return;
      if (isAbsolute) this.#placeAt(subject, to, deadlineMs);
      else this.#place(subject, to, task.delayMs);
    } else if (id !== undefined) {
      const delayMs = this.#delayMs(side, delay);
      const deadlineMs = side.clock.nowMs + delayMs;
      const waits = side.waiting.has(subject);
      const move = (timer: SystemTimer): boolean =>
        isAbsolute ? timer.rescheduleAt(id, deadlineMs) : timer.reschedule(id, delayMs);
      const other = this.#sides[side === this.#sides[0] ? 1 : 0];
      claim(!move(other.timer), `${subject.name} was found in the other timer`);
      const moveHere = (): boolean => move(side.timer);
      const moved = isAbsolute ? this.#withDeadline(side, false, moveHere) : moveHere();
      // While close runs what waits, it may be refused or not, but nothing may be lost.
      if (side.isClosed) return;
      claim(moved === waits, `reschedule of ${subject.name} must be ${String(waits)}`);
      if (waits && isAbsolute) this.#placeAt(subject, side, deadlineMs);
      else if (waits) this.#place(subject, side, delayMs);
    }
  }

  #poll(side: Side): void {
    side.pumpWith(Infinity, () => side.timer.poll());
  }

  #advanceClock(side: Side): void {
    const mayRun = side.pump === undefined && !side.isClosed;
    // What an executor was given fell due before.
    const isNew = side.turn === undefined;
    const isDue = mayRun && isNew && side.dueBy(side.clock.nowMs).size > side.sleepsEnded;
    const isOpen = mayRun && side.waiting.size > 0;
    side.pumpWith(Infinity, () => {
      const promise = side.timer.advanceClock(0);
      // A bucket that only moved its tasks to a finer wheel counts too, and the model does not know.
      this.#answers.push({ promise, expected: isDue ? true : isOpen ? undefined : false });
      return undefined;
    });
  }

  #fire(side: Side): void {
    if (side.clock.pendingWakeups === 0) return;
    const fire = (): undefined => {
      side.clock.fire();
    };
    // A wake-up that comes early is armed again.
    const { deadlineMs } = side.timer[INTERNALS]().driver.wakeup;
    side.pumpWith(side.setup.maxTasksPerTurn, fire, side.clock.nowMs >= deadlineMs);
  }

  /** Time passes, and the host delivers nothing. */
  #pass(ms: number): void {
    const nowMs = this.#sides[0].clock.nowMs + ms;
    if (nowMs > LATEST_MS) return;
    for (const side of this.#sides) side.clock.nowMs = nowMs;
  }

  /** The callback of every task and entry. */
  readonly #callback = (subject: Subject): void => {
    this.#running.push(subject);
    try {
      subject.side.ran(subject);
      if (this.#scriptsLeft-- <= 0) return;
      for (const action of this.#scenario.scripts[subject.script] ?? []) {
        this.#do(action);
        for (const side of this.#sides) checkTimer(side.timer);
      }
    } finally {
      this.#running.pop();
    }
  };

  #judgeSleeps(): void {
    for (const subject of this.#subjects) {
      const { outcome, expected, side, name } = subject;
      if (subject.kind !== 'sleep' || outcome === undefined) continue;
      if (side.waiting.has(subject)) this.#judgeSleptNow(subject);
      else {
        const maybeSlept = side.pumps.some(({ eligible }) => eligible.has(subject));
        claim(outcome === (expected ?? 'slept') || maybeSlept, `${name} ended as ${outcome}`);
      }
      delete subject.outcome;
      subject.expected = outcome;
    }
    for (const side of this.#sides) {
      claim(side.sleepsEnded === 0, 'a sleep that is over did not tell');
      side.pumps = [];
    }
  }

  #judgeSleptNow(subject: Subject): void {
    const { side, name, outcome } = subject;
    claim(outcome === 'slept', `${name} ended as ${String(outcome)}`);
    const pump = side.pumps.find(({ eligible }) => eligible.has(subject));
    claim(pump !== undefined, `${name} ended and was not due`);
    side.waiting.delete(subject);
    side.sleepsEnded--;
  }
}
