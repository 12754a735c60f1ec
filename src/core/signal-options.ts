import { requireObject, requireSignal } from './validate.ts';

/** How long a call waits. */
export interface SignalOptions {
  /** Gives up when it fires: the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The signal of options that a caller gave. */
export function signalOf(options: SignalOptions): AbortSignal | undefined {
  requireObject('options', options);
  const { signal } = options;
  if (signal !== undefined) requireSignal('options.signal', signal);
  return signal;
}
