import { ofHost } from './of-host.ts';

/*
 * The current time functions of the host. Each is looked up anew at every call, so that a test runner's
 * fake timers work whenever they are installed.
 */

/** Marks timeout functions that are built on a clock: a program may make them the global ones. */
export const ON_CLOCK: unique symbol = Symbol.for('escapement.on-clock');

const hostPerformance = ofHost('performance');

/**
 * The host's own functions, read when the module loads: for use where no fake may take their place. Take a function out of the object
 * before you call it: browsers reject a receiver that is not their global object.
 */
export const original = {
  queueMicrotask: ofHost('queueMicrotask'),
  setTimeout: ofHost('setTimeout'),
  clearTimeout: ofHost('clearTimeout'),
  performance: hostPerformance,
  // eslint-disable-next-line @typescript-eslint/unbound-method -- only compared
  now: hostPerformance.now,
  Date: ofHost('Date'),
};

type TimeoutFunctions = Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>;

/** Read now: where such a module is made when it is first read, it would have a function that wraps the host's by then. */
const nodeTimers = /* @__PURE__ */ builtinModule<TimeoutFunctions>('node:timers');

/** Undefined where the program has deleted one. */
const globals: { readonly [Name in keyof typeof original]?: (typeof original)[Name] } = globalThis;

/** The global function of a name; the host's own if there is none, or if ours has taken its place. */
export function hostFunction<Name extends keyof TimeoutFunctions>(name: Name): TimeoutFunctions[Name] {
  const current: TimeoutFunctions[Name] | undefined = globals[name];
  return current === undefined || ON_CLOCK in current ? original[name] : current;
}

/** Milliseconds since the Unix epoch. */
export function hostWallNow(): number {
  return (globals.Date ?? original.Date).now();
}

/** Whether it is the host's own function, and no fake. */
export function isHost(setTimeout: TimeoutFunctions['setTimeout']): boolean {
  return setTimeout === original.setTimeout;
}

/**
 * Whether it is a fake with a time of its own. Error trackers wrap the host's function (Sentry does by default): that one keeps the
 * host's time. Node's mock timers replace the function of `node:timers` too; the other marks are those of sinon and jest.
 */
export function isFaked(setTimeout: TimeoutFunctions['setTimeout']): boolean {
  if (isHost(setTimeout)) return false;
  const isMarked = 'clock' in setTimeout || '_isMockFunction' in setTimeout;
  return isMarked || nodeTimers?.setTimeout === setTimeout || isDateFake();
}

function isDateFake(): boolean {
  return (globals.Date ?? original.Date) !== original.Date;
}

/** Milliseconds since an arbitrary origin, on the clock that belongs to the current `setTimeout`. */
export function hostNow(): number {
  const { performance = original.performance } = globals;
  if (globals.setTimeout === original.setTimeout) return performance.now();
  const setTimeout = hostFunction('setTimeout');
  const isTimeShown = performance.now !== original.now || !isFaked(setTimeout);
  return isTimeShown ? performance.now() : faked(setTimeout).now();
}

/** A wake-up fired `delayMs` after `setAtMs`. A fake `setTimeout` without a fake `Date` shows its time only by that. */
export function hostWoke(setTimeout: TimeoutFunctions['setTimeout'], setAtMs: number, delayMs: number): void {
  if (latest?.setTimeout === setTimeout) latest.reach(setAtMs + delayMs);
}

/**
 * Time where `setTimeout` is fake and `performance` is real (node:test): that of the fake `Date`; without one it stands
 * still, and moves when a wake-up comes.
 */
class FakedTime {
  readonly setTimeout: TimeoutFunctions['setTimeout'];
  readonly Date = globals.Date;
  readonly #startMs: number;
  readonly #startDateMs = hostWallNow();
  reachedMs: number;

  /** @param earliestMs - where the time of an earlier fake has ended: timers that outlive it see no clock that is set back. */
  constructor(setTimeout: TimeoutFunctions['setTimeout'], earliestMs: number) {
    this.setTimeout = setTimeout;
    const realMs = Math.ceil(original.now.call(original.performance));
    this.#startMs = this.reachedMs = Math.max(realMs, earliestMs);
  }

  now(): number {
    if (isDateFake()) this.reach(this.#startMs + hostWallNow() - this.#startDateMs);
    return this.reachedMs;
  }

  reach(timeMs: number): void {
    this.reachedMs = Math.max(this.reachedMs, timeMs);
  }
}

let latest: FakedTime | undefined;

/** Fakes are made anew each time they are installed, except `setTimeout` of node:test, and their time begins anew, not before that of an earlier one. */
function faked(setTimeout: TimeoutFunctions['setTimeout']): FakedTime {
  if (latest?.setTimeout !== setTimeout || latest.Date !== globals.Date)
    latest = new FakedTime(setTimeout, latest?.reachedMs ?? 0);
  return latest;
}

/** Returns a module of Node; undefined in another runtime. An `import` of it could not be loaded by a browser. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the type of the module that the name stands for
export function builtinModule<Module>(name: string): Module | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => Module | undefined } };
  return process?.getBuiltinModule?.(name);
}
