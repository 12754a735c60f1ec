import type { TaskState } from '../../../tasks/task-state.ts';
import { toJson } from '../../terminal/json.ts';
import { printable } from '../../terminal/text.ts';
import type { TaskView } from '../target/tasks-target.ts';
import { showContent, type ContentStyle } from './show-content.ts';
import { showDuration, showRelative, showTime } from './show-time.ts';

/** In a table, in characters. */
const CELL_LENGTH = 60;

/** A column of a list of tasks. */
interface Column {
  readonly head: string;
  readonly cell: (task: TaskView, style: ContentStyle, nowMs: number) => string;
}

const ID: Column = { head: 'id', cell: ({ id }) => printable(id) };
const TYPE: Column = { head: 'type', cell: ({ type }) => printable(type) };
const PAYLOAD: Column = { head: 'payload', cell: ({ payload }, style) => showContent(payload, style) };
const ERROR: Column = { head: 'last error', cell: ({ lastError }) => shortText(lastError) };
const FAILED: Column = {
  head: 'last failed',
  cell: ({ lastFailedAt }, _style, nowMs) => showRelative(lastFailedAt, nowMs),
};

/** What lists have besides the first columns: asynq's. */
const COLUMNS: Readonly<Record<TaskState, readonly Column[]>> = {
  active: [{ head: 'orphaned', cell: ({ isOrphaned }) => (isOrphaned === true ? 'yes' : 'no') }],
  pending: [],
  aggregating: [{ head: 'group', cell: ({ group = '' }) => printable(group) }],
  scheduled: [
    { head: 'runs', cell: ({ nextProcessAt }, _style, nowMs) => showRelative(nextProcessAt, nowMs) },
  ],
  retry: [
    { head: 'next retry', cell: ({ nextProcessAt }, _style, nowMs) => showRelative(nextProcessAt, nowMs) },
    ERROR,
    FAILED,
    { head: 'retried', cell: ({ retried, maxRetry }) => `${retried}/${maxRetry}` },
  ],
  archived: [FAILED, ERROR],
  completed: [
    { head: 'completed', cell: ({ completedAt }, _style, nowMs) => showRelative(completedAt, nowMs) },
    { head: 'result', cell: ({ result }, style) => showContent(result, style) },
  ],
};

/** A list of tasks, as rows of a table; the first one is the head. */
export function taskRows(
  tasks: readonly TaskView[],
  state: TaskState,
  style: ContentStyle,
  nowMs: number,
): readonly string[][] {
  const columns = [ID, TYPE, PAYLOAD, ...COLUMNS[state]];
  const short = { maxLength: CELL_LENGTH, ...style };
  return [
    columns.map(({ head }) => head),
    ...tasks.map((task) => columns.map(({ cell }) => cell(task, short, nowMs))),
  ];
}

/** A name, and what there is of it. */
export type Detail = readonly [name: string, text: string];

/** All that is known of a task. */
export function taskDetails(task: TaskView, style: ContentStyle, nowMs: number): readonly Detail[] {
  const { group, lastFailedAt, timeoutMs, deadline, nextProcessAt, completedAt, retentionMs } = task;
  const when = (date: Date | undefined): string =>
    date === undefined ? '' : `${showTime(date)} (${showRelative(date, nowMs)})`;
  const details: Detail[] = [
    ['id', printable(task.id)],
    ['queue', printable(task.queue)],
    ['type', printable(task.type)],
    ['state', task.isOrphaned === true ? `${task.state}, orphaned` : task.state],
    ['retried', `${task.retried} of ${task.maxRetry}`],
    ['group', printable(group ?? '')],
    ['next process', when(nextProcessAt)],
    ['last failed', when(lastFailedAt)],
    ['last error', printable(task.lastError)],
    ['timeout', timeoutMs === undefined || timeoutMs === 0 ? '' : showDuration(timeoutMs)],
    ['deadline', when(deadline)],
    ['retention', retentionMs === undefined || retentionMs === 0 ? '' : showDuration(retentionMs)],
    ['completed', when(completedAt)],
    ['progress', task.progress === undefined ? '' : toJson(task.progress, 0)],
    ...Object.entries(task.headers ?? {}).map(([name, value]): Detail => [
      'header',
      printable(`${name}: ${value}`),
    ]),
    ['payload', showContent(task.payload, style)],
    ['result', showContent(task.result, style)],
  ];
  return details.filter(([, text]) => text !== '');
}

function shortText(text: string): string {
  const characters = Array.from(text);
  return printable(characters.length <= CELL_LENGTH ? text : `${characters.slice(0, CELL_LENGTH).join('')}…`);
}
