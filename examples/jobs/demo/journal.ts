import type { TaskInfo } from 'escapement/tasks';
import type { RunLine } from '../service/run-log.ts';
import { imageReady, type Digest } from '../service/tasks.ts';
import type { Notification } from './demo-result.ts';

/** What the service has told, in order. */
export class Journal {
  readonly runs: RunLine[] = [];
  readonly digests: Digest[] = [];
  readonly notifications: Notification[] = [];

  readonly note = (line: RunLine): void => {
    this.runs.push(line);
  };

  readonly send = (digest: Digest): void => {
    this.digests.push(digest);
  };

  /** A listener of the client's `enqueued`. */
  readonly enqueued = ({ id, type }: TaskInfo): void => {
    if (type !== imageReady.type) return;
    this.notifications.push({ imageId: id.replace('ready:', ''), atMs: performance.now() });
  };
}
