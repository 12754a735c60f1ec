import type { GroupInfo } from '../../../tasks/broker/broker.ts';
import type { QueueView, TaskView } from '../../../tasks/http/asynqmon-json.ts';
import { TASK_STATES, type TaskState } from '../../../tasks/task-state.ts';
import type { TasksOfState, TasksTarget } from '../target/tasks-target.ts';

/**
 * What the dash shows, from the outside in:
 *
 *      queues ──enter──► a queue, one state of it ──enter──► a task
 *                        its groups ──enter──► a group ──┘       (aggregating)
 *             ◄───q────                        ◄───q────
 */
export interface DashState {
  /** Queue that is shown; undefined in the list of queues. */
  readonly queue: string | undefined;
  readonly state: TaskState;
  /** Group of aggregating tasks; undefined in the list of groups. */
  readonly group: string | undefined;
  /** Task that is shown; undefined in lists. */
  readonly taskId: string | undefined;
  readonly page: number;
  /** The selected row of the list, from 0. */
  readonly row: number;
  /** What `q` goes back to, as it was left; undefined in the list of queues. */
  readonly outer: DashState | undefined;
  readonly isHelp: boolean;
  readonly isOver: boolean;
}

/** The data that was read last. Data that the state does not show is empty. */
export interface DashData {
  readonly queues: readonly QueueView[];
  readonly groups: readonly GroupInfo[];
  readonly tasks: readonly TaskView[];
  readonly task: TaskView | undefined;
}

export const FIRST_STATE: DashState = {
  ...{ queue: undefined, state: 'active', group: undefined, taskId: undefined },
  ...{ page: 1, row: 0, outer: undefined, isHelp: false, isOver: false },
};

export const NO_DATA: DashData = { queues: [], groups: [], tasks: [], task: undefined };

/** Returns the list of tasks that is shown; undefined if another list is. */
export function listShown({ queue, state, group }: DashState): TasksOfState | undefined {
  if (queue === undefined || (state === 'aggregating' && group === undefined)) return undefined;
  return { queue, state, group };
}

export function rowsShown(state: DashState, { queues, groups, tasks }: DashData): number {
  if (state.queue === undefined) return queues.length;
  return (listShown(state) === undefined ? groups : tasks).length;
}

/** Returns the state after a key, which is named as in Node's `readline`; the same state if the key has no meaning. */
export function press(state: DashState, key: string, data: DashData): DashState {
  if (key === 'ctrl-c') return { ...state, isOver: true };
  if (state.isHelp) return { ...state, isHelp: false };
  if (key === '?') return { ...state, isHelp: true };
  if (key === 'q' || key === 'escape' || key === 'backspace')
    return state.outer ?? { ...state, isOver: true };
  if (state.taskId !== undefined) return state;
  if (key === 'enter' || key === 'return') return goIn(state, data);
  const isInQueue = state.queue !== undefined;
  if (isInQueue && (key === 'h' || key === 'left')) return turn(state, -1);
  if (isInQueue && (key === 'l' || key === 'right')) return turn(state, 1);
  if (listShown(state) !== undefined && key === 'n' && data.tasks.length > 0)
    return { ...state, page: state.page + 1, row: 0 };
  if (key === 'p' && state.page > 1) return { ...state, page: state.page - 1, row: 0 };
  return move(state, key, rowsShown(state, data) - 1);
}

/** Returns a state whose selected row exists: rows may have been removed. */
export function settle(state: DashState, data: DashData): DashState {
  const row = Math.max(0, Math.min(state.row, rowsShown(state, data) - 1));
  return row === state.row ? state : { ...state, row };
}

function move(state: DashState, key: string, last: number): DashState {
  if (key === 'j' || key === 'down') return { ...state, row: Math.min(state.row + 1, Math.max(0, last)) };
  if (key === 'k' || key === 'up') return { ...state, row: Math.max(state.row - 1, 0) };
  return state;
}

/** Selects the next or the previous state, cyclically. */
function turn(state: DashState, by: number): DashState {
  const at = (TASK_STATES.indexOf(state.state) + by + TASK_STATES.length) % TASK_STATES.length;
  const outer = state.group === undefined ? state.outer : state.outer?.outer; // the list of queues
  return { ...state, state: TASK_STATES[at] ?? 'active', group: undefined, page: 1, row: 0, outer };
}

function goIn(state: DashState, { queues, groups, tasks }: DashData): DashState {
  const inside = { ...state, page: 1, row: 0, outer: state };
  if (state.queue === undefined) {
    const queue = queues[state.row]?.queue;
    return queue === undefined ? state : { ...inside, queue };
  }
  if (listShown(state) === undefined) {
    const group = groups[state.row]?.group;
    return group === undefined ? state : { ...inside, group };
  }
  const taskId = tasks[state.row]?.id;
  return taskId === undefined ? state : { ...inside, taskId };
}

/** Reads the data that a state shows. */
export async function readDash(target: TasksTarget, state: DashState, pageSize: number): Promise<DashData> {
  const { queue, taskId, page } = state;
  const list = listShown(state);
  if (queue !== undefined && taskId !== undefined) {
    return { ...NO_DATA, task: await target.getTaskInfo(queue, taskId) };
  }
  const [queues, tasks, groups] = await Promise.all([
    queue === undefined ? target.queueInfos() : target.getQueueInfo(queue).then((info) => [info]),
    list === undefined ? [] : target.list(list.queue, list.state, { page, pageSize }, list.group),
    queue === undefined || list !== undefined ? [] : target.groups(queue),
  ]);
  return { queues, groups, tasks, task: undefined };
}

/** Returns whether two states show the same data. */
export function showsSame(one: DashState, other: DashState): boolean {
  return (['queue', 'state', 'group', 'taskId', 'page'] as const).every((name) => one[name] === other[name]);
}
