import type { TaskInfo } from 'escapement/tasks';
import { resizeResult, type StoredSize } from './tasks.ts';

/** A job as a client sees it. */
export interface JobView {
  readonly id: string;
  readonly state: TaskInfo['state'];
  /** Failures until now. */
  readonly retried: number;
  readonly lastError: string;
  /** How many sizes are done, of how many. */
  readonly progress: unknown;
  /** Empty until it is done. */
  readonly sizes: readonly (StoredSize & { readonly url: string })[];
}

export function jobView(info: TaskInfo): JobView {
  const { id, state, retried, lastError, progress } = info;
  const sizes = info.result === undefined ? [] : resizeResult.parse(info.resultJson()).sizes;
  return {
    ...{ id, state, retried, lastError, progress },
    sizes: sizes.map((size) => ({ ...size, url: imageUrl(id, size.width) })),
  };
}

export function jobUrl(id: string): string {
  return `/jobs/${id}`;
}

export function imageUrl(id: string, width: number): string {
  return `/images/${id}?width=${width}`;
}
