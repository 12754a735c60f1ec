/** What the cases ask of each queue: as `bench/workqueue/job-queue.ts`, but those of tasks take their time to open. */
import type { Contestant, Role } from '../lib/part.ts';
import type { Work } from '../workqueue/jobs.ts';

export interface TaskQueue {
  /** @returns what resolves when all were taken, if the queue says so. */
  addAll(keys: readonly string[]): unknown;
  /** @returns a promise if it takes its time. */
  close(): unknown;
}

export type OpenTaskQueue = (jobs: Work, concurrency: number) => Promise<TaskQueue> | TaskQueue;

export interface TaskQueueKind {
  readonly name: string;
  readonly role: Role;
  readonly note?: string;
  readonly open: OpenTaskQueue | { readonly cannot: string };
}

/** The same case for every kind. */
export function contest<Open>(
  kinds: readonly TaskQueueKind[],
  openWith: (open: OpenTaskQueue) => Open,
): Contestant<Open>[] {
  return kinds.map(({ name, role, note, open }) => ({
    name,
    role,
    ...(note === undefined ? {} : { note }),
    open: typeof open === 'function' ? openWith(open) : open,
  }));
}
