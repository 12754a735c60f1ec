import type { Comparison } from './compare-trees.ts';
import type { Attempt } from './journal.ts';
import type { Scrape } from './scrape.ts';

/** What a run of the demonstration leaves behind. */
export interface DemoResult {
  readonly maxRetries: number;
  readonly retryDelayMs: number;
  readonly workers: number;
  /** Changes to the source tree. */
  readonly changes: number;
  readonly events: number;
  readonly attempts: readonly Attempt[];
  readonly overlaps: readonly string[];
  readonly mostInWork: number;
  /** Scraped over HTTP, in the middle of the run, and when the controller had stopped. */
  readonly during: Scrape;
  readonly afterwards: Scrape;
  readonly trees: Comparison;
  /** What waited for a retry when the controller was stopped. */
  readonly left: readonly string[];
}
