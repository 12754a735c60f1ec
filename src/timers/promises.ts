import { builtinModule } from '../core/host.ts';
import { illegalConstructor, invalidArgument } from './host-error.ts';
import { Timeout } from './timeout.ts';

/** Options of the functions here. Others are ignored, as the host ignores them: programs must run as they did with its own. */
export interface TimerOptions {
  /** Rejects with an `AbortError` when it fires. */
  readonly signal?: AbortSignal | undefined;
  /** Whether it keeps the process alive meanwhile. @default true */
  readonly ref?: boolean | undefined;
}

/** As the host's: name `AbortError`, code `ABORT_ERR`, the signal's reason as the cause. */
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
 * Rejects with an `AbortError` when `options.signal` fires, and with a `TypeError` for options that are none.
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
    // First, because it throws if the signal has no such method: nothing must wait then.
    signal?.addEventListener('abort', onAbort, { once: true });
    const timeout = new Timeout(onTimeout, delay, undefined, false, ref);
  });
}

/**
 * Yields `value` every `delay` milliseconds, without drift. A loop that is busy when it is due gets it as soon as it
 * asks again; what it misses beyond that is left out, and not made up for in a burst as by the host.
 */
export async function* setInterval<T = void>(
  delay?: number,
  value?: T,
  options: TimerOptions = {},
): AsyncGenerator<T, void, void> {
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

/** An interval that is waited for: it remembers one tick that nobody was waiting for, not more. */
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

  /** Resolves at the next tick; with false if it is stopped, and there was none that nobody was waiting for. */
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

interface Immediates {
  readonly setImmediate: <T = void>(value?: T, options?: TimerOptions) => Promise<T>;
}

/** The host's: there is no delay to wait for. Where the host has none, the shortest timeout. */
export const setImmediate: Immediates['setImmediate'] =
  builtinModule<Immediates>('node:timers/promises')?.setImmediate ??
  ((value, options) => setTimeout(0, value as never, options));

/** The class of {@link scheduler}. As with the host's, calling its constructor throws. */
class Scheduler {
  /** @throws TypeError `ERR_ILLEGAL_CONSTRUCTOR` - always. */
  constructor() {
    throw illegalConstructor();
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

/** As the host's. */
export const scheduler = Object.create(Scheduler.prototype) as Scheduler;
export type { Scheduler }; // the class itself is not to be found in the module, as with the host

/** A call, because a signal that was looked at before may have fired since, and types do not know. */
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

/** By what the host tells one. */
function isSignal(value: unknown): boolean {
  return isObject(value) && 'aborted' in value;
}
