/**
 * State of a task. Every task of a queue is in exactly one, as in asynq:
 *
 *      from                                    to            when
 *      ──────────────────────────────────────  ────────────  ────────────────────────────────────────────────────
 *      (none)                                  pending       it is enqueued
 *      (none)                                  scheduled     it is enqueued for later
 *      (none)                                  aggregating   it is enqueued into a group
 *      scheduled, retry                        pending       it is due; aggregating, if it has a group
 *      pending                                 active        a server leases it
 *      active                                  (removed)     done without retention, or revoked
 *      active                                  completed     done, and its result is retained
 *      active                                  retry         failed, or its server is lost
 *      active                                  archived      failed for the last time
 *      active                                  pending       released, to the head of its queue
 *      aggregating                             (removed)     the task that replaces its group is enqueued
 *      completed                               (removed)     its retention is over
 *      scheduled, retry, archived, completed,
 *        aggregating                           pending       an inspector runs it
 *      pending, scheduled, retry, completed,
 *        aggregating                           archived      an inspector archives it
 *      any but active                          (removed)     an inspector deletes it
 */
export type TaskState =
  | 'active'
  | 'pending'
  | 'scheduled'
  | 'retry'
  | 'archived'
  | 'completed'
  | 'aggregating';

/** All states, in asynq's order. Their type is written out, so that the documentation of the API lists them. */
export const TASK_STATES: readonly TaskState[] = [
  'active',
  'pending',
  'scheduled',
  'retry',
  'archived',
  'completed',
  'aggregating',
];

export function isTaskState(word: string): word is TaskState {
  return (TASK_STATES as readonly string[]).includes(word);
}

/** How an inspector changes tasks. */
export type TaskChange = 'delete' | 'run' | 'archive';

/** A row of {@link TASK_CHANGES}. */
export interface TaskChangeRule {
  /** Name of the change in errors: `deleted`. */
  readonly done: string;
  /** States of tasks for which the change is refused. */
  readonly refused: readonly TaskState[];
}

/** The changes: the name of each in errors, and the states of tasks for which it is refused. */
export const TASK_CHANGES: Readonly<Record<TaskChange, TaskChangeRule>> = {
  delete: { done: 'deleted', refused: ['active'] },
  run: { done: 'run now', refused: ['active', 'pending'] },
  archive: { done: 'archived', refused: ['active', 'archived'] },
};

/** The changes that asynq has for the tasks of a state: those of asynqmon's API. A broker allows more. Active tasks are cancelled instead. */
export const ASYNQ_CHANGES: Readonly<Record<TaskState, readonly TaskChange[]>> = {
  active: [],
  pending: ['delete', 'archive'],
  scheduled: ['delete', 'run', 'archive'],
  retry: ['delete', 'run', 'archive'],
  archived: ['delete', 'run'],
  completed: ['delete'],
  aggregating: ['delete', 'run', 'archive'],
};
