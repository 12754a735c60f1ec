import { setImmediate as hostImmediate } from 'node:timers/promises';
import { wrongType } from '../core/errors.ts';
import { requireObject, requireSignal } from '../core/validate.ts';
import { Timeout } from './timeout.ts';

/** Options of the functions here. */
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
  return new Promise((resolve, reject) => {
    const { signal, ref } = checked(options);
    throwIfAborted(signal);
    const onAbort = (): void => {
      timeout.close();
      reject(new AbortError(signal as AbortSignal));
    };
    const onTimeout = (): void => {
      signal?.removeEventListener('abort', onAbort);
      resolve(value as T);
    };
    const timeout = new Timeout(onTimeout, delay, undefined, false, ref);
    signal?.addEventListener('abort', onAbort, { once: true });
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
  const { signal, ref } = checked(options);
  throwIfAborted(signal);
  const ticks = new Ticks(delay, ref);
  const onAbort = (): void => {
    ticks.stop();
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    for (;;) {
      await ticks.next();
      throwIfAborted(signal);
      yield value as T;
    }
  } finally {
    ticks.stop();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** An interval that is waited for: it remembers one tick that nobody was waiting for, not more. */
class Ticks {
  readonly #interval: Timeout;
  #isDue = false;
  #wake: (() => void) | undefined;

  constructor(delay: number | undefined, hasRef: boolean) {
    const onTick = (): void => {
      this.#tick();
    };
    this.#interval = new Timeout(onTick, delay, undefined, true, hasRef);
  }

  /** Resolves at the next tick, or when it is stopped. */
  async next(): Promise<void> {
    if (!this.#isDue) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#isDue = false;
  }

  stop(): void {
    this.#interval.close();
    this.#tick();
  }

  #tick(): void {
    this.#isDue = true;
    this.#wake?.();
  }
}

/** The host's: there is no delay to wait for. */
export { hostImmediate as setImmediate };

/** As the host's. */
export const scheduler = {
  /** Resolves after `delay` milliseconds. */
  wait(delay: number, options?: Pick<TimerOptions, 'signal'>): Promise<void> {
    return setTimeout(delay, undefined, options);
  },
  /** Resolves in a turn of the event loop of its own: after the I/O that is ready. */
  yield(): Promise<void> {
    return hostImmediate();
  },
};

/** A call, because a signal that was looked at before may have fired since, and types do not know. */
function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new AbortError(signal);
}

function checked(options: TimerOptions): { signal: AbortSignal | undefined; ref: boolean } {
  requireObject('options', options);
  const { signal, ref = true } = options;
  if (signal !== undefined) requireSignal('options.signal', signal);
  if (typeof ref !== 'boolean') throw wrongType('options.ref', 'a boolean', ref);
  return { signal, ref };
}
