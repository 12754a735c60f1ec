import type {
  GroupLimits,
  NewTask,
  TaskChange,
  TaskMessage,
  TaskRecord,
  TaskSet,
  TaskState,
} from 'escapement/tasks';
import { TASK_STATES } from '../../src/tasks/task-state.ts';
import { GROUPS } from './broker-actions.ts';
import { showTurns, type ModelTurns } from './broker-model-turns.ts';
import type { BrokerSideOptions, Ties } from './broker-side.ts';

/** What the model of a broker is made of. */

export interface ModelOptions extends BrokerSideOptions {
  readonly ties: Ties;
}

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
  progress: string | undefined;
  set: ModelSet | undefined;
}

export interface ModelSet {
  readonly shown: TaskSet;
  readonly endsAtMs: number;
  readonly armed: number;
}

/** What happens by itself. */
export interface ModelEvent {
  readonly atMs: number;
  readonly armed: number;
  /** The task that it happens to, if it is one. */
  readonly row: ModelTask | undefined;
  readonly happen: () => void;
}

export interface ModelQueue extends ModelTurns {
  tasks: ModelTask[];
  sets: ModelSet[];
  isPaused: boolean;
  /** The latest of each entry. */
  readonly ticks: Map<string, number>;
  processed: number;
  failed: number;
}

export function emptyQueue(): ModelQueue {
  return {
    ...{ tasks: [], sets: [], isPaused: false, ticks: new Map(), processed: 0, failed: 0 },
    ...{ limits: undefined, ring: [], fullAtMs: new Map(), changes: 0 },
  };
}

export interface ModelLock {
  readonly key: string;
  readonly task: ModelTask;
  endsAtMs: number;
}

/** What a call returns, or the code of its error. */
export function outcomeOf(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return (error as { code: string }).code;
  }
}

/** In how many milliseconds a group is due with these tasks. */
export function groupDueInMs(
  waiting: readonly ModelTask[],
  { graceMs, maxDelayMs, maxSize }: GroupLimits,
  nowMs: number,
): number | undefined {
  const times = waiting.map(({ atMs }) => atMs);
  if (times.length === 0) return undefined;
  if (maxSize > 0 && times.length >= maxSize) return 0;
  const quietMs = Math.max(...times) + graceMs - nowMs;
  const delayMs = maxDelayMs === 0 ? Infinity : Math.min(...times) + maxDelayMs - nowMs;
  return Math.max(0, Math.min(quietMs, delayMs));
}

/** Orders tasks by queue and id. */
export function byId(a: Pick<ModelTask, 'message'>, b: Pick<ModelTask, 'message'>): number {
  return compare(`${a.message.queue} ${a.message.id}`, `${b.message.queue} ${b.message.id}`);
}

/** Orders tasks by their keys. */
export function byKey(a: Pick<ModelTask, 'message'>, b: Pick<ModelTask, 'message'>): number {
  return compare(a.message.key, b.message.key);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

export function recordOf({ message, state, atMs, result, progress }: ModelTask, nowMs: number): TaskRecord {
  const isByMoment = state === 'scheduled' || state === 'retry';
  return {
    message,
    state,
    nextProcessAtMs: state === 'pending' ? nowMs : isByMoment ? atMs : 0,
    result,
    progress,
    isOrphaned: state === 'active' && atMs <= nowMs,
  };
}

/** The tasks of a state, in their order. */
export function tasksIn(tasks: readonly ModelTask[], ties: Ties, state: TaskState): ModelTask[] {
  return tasks.filter((row) => row.state === state).sort(orderOf(ties, state));
}

export function showQueue(home: ModelQueue, ties: Ties, nowMs: number): unknown {
  const show = (rows: readonly ModelTask[]): TaskRecord[] => rows.map((row) => recordOf(row, nowMs));
  const states = ['active', 'pending', 'scheduled', 'retry', 'archived', 'completed'] as const;
  const [active = [], pending = [], ...others] = states.map((state) => tasksIn(home.tasks, ties, state));
  const aggregating = tasksIn(home.tasks, ties, 'aggregating');
  const groups = GROUPS.map((group) => {
    const held = aggregating.filter(({ message, set }) => message.group === group && set !== undefined);
    const waiting = aggregating.filter((row) => isWaitingIn(row, group));
    return { group, size: waiting.length, tasks: [...waiting, ...held.sort(byId)] };
  });
  return {
    isPaused: home.isPaused,
    processed: home.processed,
    failed: home.failed,
    ...(showTurns(home, nowMs) as object),
    // In which order keys are pending is not promised; nor, by ids, in which order tasks are active.
    tasks: [ties === 'id' ? active.sort(byId) : active, pending.sort(byKey), ...others].map(show),
    sizes: Object.fromEntries(groups.filter(({ size }) => size > 0).map(({ group, size }) => [group, size])),
    groups: Object.fromEntries(groups.map(({ group, tasks }) => [group, show(tasks)])),
    aggregating: aggregating.length,
  };
}

/** How tasks of a state are listed. */
function orderOf(ties: Ties, state: TaskState): (a: ModelTask, b: ModelTask) => number {
  const isQueued = state === 'pending' || state === 'active';
  if (ties === 'id' && !isQueued) return (a, b) => a.atMs - b.atMs || byId(a, b);
  const isByMoment = state === 'scheduled' || state === 'retry';
  return (a, b) => (isByMoment ? a.atMs - b.atMs : 0) || a.order - b.order;
}

/** What of two that come at one moment comes first; by ids, what was scheduled is before what is retried. */
export function tie(ties: Ties, a: ModelEvent, b: ModelEvent): number {
  if (ties === 'arrival') return a.armed - b.armed;
  if (a.row === undefined || b.row === undefined) return 0;
  return Number(b.row.state === 'scheduled') - Number(a.row.state === 'scheduled') || byId(a.row, b.row);
}

/** States in which a change is refused. */
export const REFUSED: Readonly<Record<TaskChange, readonly TaskState[]>> = {
  delete: ['active'],
  run: ['active', 'pending'],
  archive: ['active', 'archived'],
};

/** Whether a task that is enqueued replaces this one, which holds its lock. */
export function isReplacedBy({ state, set }: ModelTask, { onDuplicate = 'reject' }: NewTask): boolean {
  if (onDuplicate === 'reject' || set !== undefined) return false;
  return ['pending', 'scheduled', 'retry', 'aggregating'].includes(state);
}

/** States in which a payload is not changed. */
export const NOT_SCHEDULED = TASK_STATES.filter((state) => state !== 'scheduled');

export function newRow(message: TaskMessage): ModelTask {
  return {
    ...{ message, state: 'pending', atMs: 0, order: 0, armed: 0, epoch: 0, recoveries: 0 },
    ...{ result: undefined, progress: undefined, set: undefined },
  };
}

/** Whether a task is in a group, and in no set. */
export function isWaitingIn({ message, set }: ModelTask, group: string): boolean {
  return message.group === group && set === undefined;
}
