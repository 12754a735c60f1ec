import { checkOptions, type OptionTable } from './options.ts';
import { requireSignal } from './validate.ts';

/** How long a call waits. */
export interface SignalOptions {
  /** Gives up when it fires: the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

const SIGNAL_OPTIONS = { signal: [requireSignal, undefined] } satisfies OptionTable<SignalOptions>;

/** Returns the signal of options that a caller gave to `subject`. */
export function signalOf(subject: string, options: SignalOptions): AbortSignal | undefined {
  checkOptions(subject, options, SIGNAL_OPTIONS);
  return options.signal;
}

/** Settles as a promise does, or rejects with the signal's reason as soon as it fires, whatever is pending. */
export async function unlessAborted<R>(signal: AbortSignal, pending: Promise<R>): Promise<R> {
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => {
      reject(signal.reason as Error);
    };
  });
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    return await Promise.race([pending, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
