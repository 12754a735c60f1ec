import { NO_TIMER } from './task-row.ts';
import type { TaskList } from './task-list.ts';

/** Tasks that somebody has taken out of a group to aggregate them. */
export class HeldSet {
  readonly id: string;
  readonly list: TaskList;
  /** When they go back, on the monotonic clock. */
  readonly endsAtMs: number;
  timer = NO_TIMER;

  constructor(id: string, list: TaskList, endsAtMs: number) {
    this.id = id;
    this.list = list;
    this.endsAtMs = endsAtMs;
  }
}
