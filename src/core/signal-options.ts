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
