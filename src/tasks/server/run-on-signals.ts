/** What signals do to a server. */
export interface SignalActions {
  /** SIGTERM, SIGINT: it is to end. */
  readonly end: () => void;
  /** SIGTSTP: it is to take nothing more. */
  readonly stop: () => void;
}

/** Windows has no SIGTSTP. */
const STOP_SIGNALS: readonly NodeJS.Signals[] = process.platform === 'win32' ? [] : ['SIGTSTP'];
const END_SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT'];

/**
 * Listens to the signals of the process. A second one does nothing: a terminal and a process manager often send two.
 *
 * @returns what removes the listeners.
 */
export function listenToSignals({ end, stop }: SignalActions): () => void {
  for (const signal of END_SIGNALS) process.on(signal, end);
  for (const signal of STOP_SIGNALS) process.on(signal, stop);
  return () => {
    for (const signal of END_SIGNALS) process.off(signal, end);
    for (const signal of STOP_SIGNALS) process.off(signal, stop);
  };
}
