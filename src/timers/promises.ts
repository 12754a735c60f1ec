import { builtinModule } from '../core/host.ts';
import { illegalTimerConstructor, invalidArgument, Timeout } from './timeout.ts';

/** Options of these functions. Unknown ones are ignored, as by the host: programs must run as they did with the host's functions. */
export interface TimerOptions {
  /** Rejects with an `AbortError` when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the timeout keeps the process alive. @default true */
  readonly ref?: boolean | undefined;
}

/** The host's error: name `AbortError`, code `ABORT_ERR`, the signal's reason as the cause. */
class AbortError extends Error {
  readonly code = 'ABORT_ERR';
  override readonly name = 'AbortError';

  constructor(signal: AbortSignal) {
    super('The operation was aborted', { cause: signal.reason });
  }
}

/**
 * Resolves with `value` after `delay` milliseconds: the host's function of this name on the shared timer.
 *
 * Rejects with an `AbortError` when `options.signal` is aborted, and with a `TypeError` for invalid options.
 */
export function setTimeout<T = void>(delay?: number, value?: T, options: TimerOptions = {}): Promise<T> {
  return new Promise((resolve, reject: (error: Error) => void) => {
    const { signal, ref } = checked(delay, options);
    throwIfAborted(signal);
    const onAbort = (): void => {
      timeout.close();
      reject(new AbortError(signal as AbortSignal));
    };
    const onTimeout = (): void => {
      try {
        signal?.removeEventListener('abort', onAbort);
        resolve(value as T);
      } catch (error) {
        reject(error as Error);
      }
    };
    // First, because it throws if the signal has no such method: then no timeout must be pending.
    signal?.addEventListener('abort', onAbort, { once: true });
    const timeout = new Timeout(onTimeout, delay, undefined, false, ref);
  });
}

/**
 * Yields `value` every `delay` milliseconds, without drift. A loop that is busy at a tick gets it with its next step; further
 * ticks that it misses are left out, where the host yields them in a burst.
 */
export async function* setInterval<T = void>(
  delay?: number,
  value?: T,
  options: TimerOptions = {},
): AsyncGenerator<T, undefined, void> {
  const { signal, ref } = checked(delay, options);
  throwIfAborted(signal);
  const ticks = new Ticks(delay, ref);
  const onAbort = (): void => {
    ticks.stop();
  };
  try {
    signal?.addEventListener('abort', onAbort, { once: true });
    while (await ticks.next()) yield value as T;
    throw new AbortError(signal as AbortSignal);
  } finally {
    ticks.stop();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** An interval whose ticks are awaited: it keeps at most one tick for which there was no waiting call. */
class Ticks {
  readonly #interval: Timeout;
  #isDue = false;
  #isStopped = false;
  #wake: (() => void) | undefined;

  constructor(delay: number | undefined, hasRef: boolean) {
    const onTick = (): void => {
      this.#tick();
    };
    this.#interval = new Timeout(onTick, delay, undefined, true, hasRef);
  }

  /** Resolves with true at the next tick, or at once if a tick is kept; with false if the interval is stopped. */
  async next(): Promise<boolean> {
    if (!this.#isDue && !this.#isStopped) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const wasDue = this.#isDue;
    this.#isDue = false;
    return wasDue;
  }

  stop(): void {
    this.#interval.close();
    this.#isStopped = true;
    this.#wakeUp();
  }

  #tick(): void {
    this.#isDue = true;
    this.#wakeUp();
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

/** The host's function: it has no delay. Where the host has none, the shortest timeout. */
export const setImmediate: <T = void>(value?: T, options?: TimerOptions) => Promise<T> =
  builtinModule<{ readonly setImmediate: typeof setImmediate }>('node:timers/promises')?.setImmediate ??
  ((value, options) => setTimeout(0, value as never, options));

/** The class of {@link scheduler}. Its constructor throws, as the host's. */
class Scheduler {
  /** @throws TypeError `ERR_ILLEGAL_CONSTRUCTOR` - always. */
  constructor() {
    throw illegalTimerConstructor();
  }

  /** Resolves after `delay` milliseconds. */
  wait(delay: number, options?: Pick<TimerOptions, 'signal'>): Promise<void> {
    return setTimeout(delay, undefined, options);
  }

  /** Resolves in a turn of the event loop of its own: after the I/O that is ready. */
  yield(): Promise<void> {
    return setImmediate();
  }
}

/** The scheduler, as the host's. */
export const scheduler = Object.create(Scheduler.prototype) as Scheduler;
export type { Scheduler }; // the class itself is not exported, as by the host

/** A function, so that TypeScript does not narrow `aborted` across calls. */
function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new AbortError(signal);
}

function checked(delay: unknown, options: TimerOptions): { signal: AbortSignal | undefined; ref: boolean } {
  if (delay !== undefined && typeof delay !== 'number') throw invalidArgument('delay', 'a number', delay);
  if (!isObject(options) || Array.isArray(options)) throw invalidArgument('options', 'an object', options);
  const { signal, ref = true } = options;
  if (signal !== undefined && !isSignal(signal))
    throw invalidArgument('options.signal', 'an AbortSignal', signal);
  if (typeof ref !== 'boolean') throw invalidArgument('options.ref', 'a boolean', ref);
  return { signal, ref };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The host's check of a signal. */
function isSignal(value: unknown): boolean {
  return isObject(value) && 'aborted' in value;
}
