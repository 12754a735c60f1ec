/** What one contestant yields in one round, whatever the kind of case. */
export interface Measurement {
  /** By metric name, in the order of the case's metrics. */
  readonly values: Readonly<Record<string, number>>;
  readonly problem: string | undefined;
}

/** The name of what a micro or bulk case times. */
export const TIME = 'time';
/** The collector's share of that time. */
export const COLLECTOR = 'collector';
/** What the run left behind, per item. */
export const BYTES = 'bytes';

export const NS_PER_MS = 1e6;
