/** Requests for this path are answered at once and counted nowhere: a client opens its connections with them. */
export const WARM_UP_PATH = '/warm-up';

/** What the server process asks of the load process. */
export interface LoadPlan {
  readonly port: number;
  readonly ratePerSecond: number;
  readonly durationMs: number;
  readonly connections: number;
  readonly timeoutMs: number;
}

/** What the load process saw. */
export interface LoadResult {
  /** Requests that were sent. */
  readonly sent: number;
  readonly answered: number;
  readonly timedOut: number;
  /** Requests that ended without an answer. */
  readonly failed: number;
  /** Arrivals that found every connection busy and had not been sent when the time was up. */
  readonly unsent: number;
  /** From sending a request to the last byte of its 504, in milliseconds; NaN without one. */
  readonly timeoutSeenMs: { readonly p50: number; readonly p99: number };
}

/** Parent to child: the plan starts the load, `'stop'` ends it early. */
export type LoadCommand = { readonly plan: LoadPlan } | 'stop';

/**
 * Child to parent: every connection is open and the first request is about to be sent; then the result. Or, instead
 * of either, what went wrong.
 */
export type LoadReport = 'started' | { readonly result: LoadResult } | { readonly failure: string };
