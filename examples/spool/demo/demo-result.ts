import type { Arrivals } from './arrivals.ts';
import type { ProcessEnd } from './child.ts';
import type { ProducerResult } from './producer.ts';

/** What a run of the demonstration leaves behind. */
export interface DemoResult extends ProducerResult {
  readonly ratePerSecond: number;
  /** Lines of a request, at most. */
  readonly batchLines: number;
  readonly arrivals: Arrivals;
  /** Lines in the spool, when all was over. */
  readonly left: number;
  /** The most lines that were seen in the spool. */
  readonly deepest: number;
  /** Requests that were repeated. */
  readonly retries: number;
  readonly processes: readonly ProcessFate[];
}

/** A process, when all is over. */
export interface ProcessFate {
  readonly name: string;
  readonly pid: number;
  readonly end: ProcessEnd;
  readonly isRunning: boolean;
}
