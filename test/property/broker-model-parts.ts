import type { TaskMessage, TaskSet, TaskState } from 'escapement/tasks';

/** What the model of a broker is made of. */

export interface ModelTask {
  message: TaskMessage;
  state: TaskState;
  /** As `TaskRow.atMs`; and when something happens to it by itself, if it does. */
  atMs: number;
  /** Its place among those of its state. */
  order: number;
  /** When its wake-up was set, among all: what is due together happens in that order. */
  armed: number;
  epoch: number;
  recoveries: number;
  result: Uint8Array | undefined;
  set: ModelSet | undefined;
}

export interface ModelSet {
  readonly shown: TaskSet;
  readonly endsAtMs: number;
  readonly armed: number;
}

export interface ModelQueue {
  tasks: ModelTask[];
  sets: ModelSet[];
  isPaused: boolean;
  processed: number;
  failed: number;
}

export interface ModelLock {
  readonly key: string;
  readonly task: ModelTask;
  readonly endsAtMs: number;
}

export function failWith(code: string): never {
  throw Object.assign(new Error(code), { code });
}
