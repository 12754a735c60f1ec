import type { JobView } from '../service/job-view.ts';
import type { RunLine } from '../service/run-log.ts';
import type { Digest } from '../service/tasks.ts';
import type { QueueCounts } from './jobs-client.ts';
import type { Sample } from './sample-images.ts';

/** What a run of the demonstration leaves behind. */
export interface DemoResult {
  readonly widths: readonly number[];
  readonly graceMs: number;
  readonly bursts: readonly Burst[];
  readonly notifications: readonly Notification[];
  readonly digests: readonly Digest[];
  readonly runs: readonly RunLine[];
  /** How often the storage has refused. */
  readonly refusals: number;
  /** At the end, over HTTP. */
  readonly queues: readonly QueueCounts[];
  /** Files from long ago, laid out before the start, that are still there. */
  readonly oldFilesLeft: number;
}

/** What a customer has sent at once. */
export interface Burst {
  readonly customer: string;
  readonly images: readonly SentImage[];
}

export interface SentImage extends Pick<Sample, 'name' | 'width' | 'height' | 'isBroken'> {
  readonly id: string;
  /** When it was over. */
  readonly job: JobView;
  /** What came back. */
  readonly received: readonly ReceivedImage[];
}

export interface ReceivedImage {
  readonly width: number;
  readonly height: number;
  readonly format: string;
}

/** What has gone into a group. */
export interface Notification {
  readonly imageId: string;
  readonly atMs: number;
}
