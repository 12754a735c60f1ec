import { requireOptions, requireSignal, type OptionNames } from './validate.ts';

/** How long a call waits. */
export interface SignalOptions {
  /** Gives up when it fires: the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export const SIGNAL_OPTIONS: OptionNames<SignalOptions> = { signal: true };

/** The signal of options that a caller gave to `subject`. */
export function signalOf(
  subject: string,
  options: SignalOptions,
  names: OptionNames<SignalOptions> = SIGNAL_OPTIONS,
): AbortSignal | undefined {
  requireOptions(subject, options, names);
  const { signal } = options;
  if (signal !== undefined) requireSignal('options.signal', signal);
  return signal;
}
