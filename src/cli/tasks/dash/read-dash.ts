import type { TasksTarget } from '../target/tasks-target.ts';
import { listShown, type DashData, type DashState } from './dash-state.ts';

/** Reads what the state shows, and nothing else. */
export async function readDash(target: TasksTarget, state: DashState, pageSize: number): Promise<DashData> {
  const { queue, taskId, page } = state;
  const list = listShown(state);
  if (queue !== undefined && taskId !== undefined) {
    return { queues: [], groups: [], tasks: [], task: await target.task(queue, taskId) };
  }
  const [queues, tasks, groups] = await Promise.all([
    queue === undefined ? target.queues() : target.queue(queue).then((view) => [view]),
    list === undefined ? [] : target.tasks(list, { page, pageSize }),
    queue === undefined || list !== undefined ? [] : target.groups(queue),
  ]);
  return { queues, groups, tasks, task: undefined };
}

/** Whether two states show the same: then what was read for one will do for the other. */
export function showsSame(one: DashState, other: DashState): boolean {
  return (['queue', 'state', 'group', 'taskId', 'page'] as const).every((name) => one[name] === other[name]);
}
