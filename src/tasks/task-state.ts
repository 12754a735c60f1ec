/**
 * Where a task is. Every task of a queue is in exactly one state, as asynq has them:
 *
 *      from                                    to            when
 *      ──────────────────────────────────────  ────────────  ────────────────────────────────────────────────────
 *      (nowhere)                               pending       it is enqueued
 *      (nowhere)                               scheduled     … for later
 *      (nowhere)                               aggregating   … into a group
 *      scheduled, retry                        pending       its moment has come; aggregating, if it has a group
 *      pending                                 active        a worker leases it
 *      active                                  (gone)        done, and nothing to retain; or revoked
 *      active                                  completed     done, and its result is retained
 *      active                                  retry         failed, or its worker is gone
 *      active                                  archived      failed for the last time
 *      active                                  pending       given back, to the head of its queue
 *      aggregating                             (gone)        a task that stands for its group is enqueued
 *      completed                               (gone)        its retention is over
 *      scheduled, retry, archived, completed,
 *        aggregating                           pending       somebody runs it now
 *      pending, scheduled, retry, completed,
 *        aggregating                           archived      somebody archives it
 *      any but active                          (gone)        somebody deletes it
 */
export type TaskState =
  'active' | 'pending' | 'scheduled' | 'retry' | 'archived' | 'completed' | 'aggregating';

/** All of them, in asynq's order. */
export const TASK_STATES: readonly TaskState[] = [
  'active',
  'pending',
  'scheduled',
  'retry',
  'archived',
  'completed',
  'aggregating',
];

/** Whether a word is the name of a state. */
export function isTaskState(word: string): word is TaskState {
  return (TASK_STATES as readonly string[]).includes(word);
}

/** What an inspector can do to tasks. */
export type TaskChange = 'delete' | 'run' | 'archive';

/** A row of {@link TASK_CHANGES}. */
export interface TaskChangeRule {
  /** How errors name the change: `deleted`. */
  readonly done: string;
  /** States in which a task cannot be changed so. */
  readonly refused: readonly TaskState[];
}

/** By change: how errors name it, and the states of tasks for which it is refused. */
export const TASK_CHANGES: Readonly<Record<TaskChange, TaskChangeRule>> = {
  delete: { done: 'deleted', refused: ['active'] },
  run: { done: 'run now', refused: ['active', 'pending'] },
  archive: { done: 'archived', refused: ['active', 'archived'] },
};
