import type { TimerSnapshot } from 'escapement';
import type { LoadResult } from './load/load-protocol.ts';
import type { LoadSample } from './server/load-sampler.ts';
import type { DemoOptions } from './options.ts';

/** What a run measured. */
export interface DemoResult {
  readonly options: DemoOptions;
  /** Ctrl-C ended it. */
  readonly isInterrupted: boolean;
  /** As the server counted them. */
  readonly requests: number;
  readonly answered: number;
  readonly timedOut: number;
  readonly abandoned: number;
  readonly connections: number;
  readonly peakInFlight: number;
  /** As the clients counted them. */
  readonly load: LoadResult;
  /** The share that must time out, from the law of the service time. */
  readonly expectedShare: number;
  /** How long after its deadline each timed-out request was answered, in milliseconds, ascending. */
  readonly latenessMs: Float64Array;
  /** Timers still in the wheels when the last request was over. */
  readonly leftInTimer: number;
  readonly wakeUps: number;
  /** Of the server process, from the first request to the last answer. */
  readonly cpuUserMs: number;
  readonly cpuSystemMs: number;
  readonly elapsedMs: number;
  /** Share of the time in which the server's event loop had something to do. */
  readonly loopBusy: number;
  readonly peakRssBytes: number;
  readonly samples: readonly LoadSample[];
  /** The wheels at their fullest. */
  readonly peak: TimerSnapshot;
}
