import { TASK_STATES } from '../../../tasks/task-state.ts';
import { formatCount, harmless, plainTable, printable } from '../../terminal/text.ts';
import { QUEUE_ALIGNS, queueRows } from '../show/show-queue.ts';
import { taskDetails, taskRows, type Detail } from '../show/show-task.ts';
import { showTime } from '../show/show-time.ts';
import { listShown, type DashData, type DashState } from './dash-state.ts';

/** A line of the screen. */
export interface Line {
  readonly text: string;
  readonly style?: 'bold' | 'inverse' | 'red';
}

/** What is shown around the state. */
export interface DashFrame {
  /** Where the tasks are. */
  readonly name: string;
  /** Whether what is shown is still being read, for the first time. */
  readonly isReading: boolean;
  /** What went wrong when it was last read. */
  readonly error: string | undefined;
  /** When it was last read; undefined if it never was. */
  readonly readAtMs: number | undefined;
  readonly nowMs: number;
  /** Of the screen. */
  readonly height: number;
}

const HELP: readonly Detail[] = [
  ['j, down', 'the next row'],
  ['k, up', 'the row before'],
  ['enter', 'what is in the row: a queue, a group, a task'],
  ['h, left', 'the state before: active, pending, …'],
  ['l, right', 'the next state'],
  ['n, p', 'the next page, the page before'],
  ['q, escape', 'back; from the queues, end'],
  ['ctrl-c', 'end'],
  ['?', 'this help'],
];

/** Above and below the list: title, what was chosen, a line between, the error, the keys. */
const LINES_AROUND = 8;

/** How many rows of a list there is room for. */
export function roomFor(height: number): number {
  return Math.max(1, height - LINES_AROUND);
}

/** The screen, from the top; no more lines than it has. */
export function dashLines(state: DashState, data: DashData, frame: DashFrame): readonly Line[] {
  const body = state.isHelp ? details(HELP) : bodyOf(state, data, frame);
  const keys = state.isHelp
    ? 'any key: back'
    : 'j/k: row   enter: in   h/l: state   n/p: page   q: back   ?: help';
  const lines: Line[] = [
    { text: `escapement tasks  ${printable(frame.name)}  ${readAt(frame)}`, style: 'bold' },
    { text: '' },
    ...body,
    { text: '' },
    ...(frame.error === undefined ? [] : [{ text: harmless(frame.error), style: 'red' as const }]),
    { text: keys },
  ];
  return lines.slice(0, frame.height);
}

function readAt({ readAtMs }: DashFrame): string {
  return readAtMs === undefined ? '…' : showTime(new Date(readAtMs));
}

function bodyOf(state: DashState, data: DashData, frame: DashFrame): readonly Line[] {
  const room = roomFor(frame.height);
  if (state.queue === undefined)
    return rowLines(queueRows(data.queues), state.row, room, frame, QUEUE_ALIGNS);
  if (state.taskId !== undefined) {
    const { task } = data;
    if (task !== undefined) return details(taskDetails(task, {}, frame.nowMs));
    return [{ text: `  ${printable(state.taskId)} …` }];
  }
  return [...queueLines(state, data), ...listLines(state, data, frame, room)];
}

function queueLines({ queue, state, group, page }: DashState, { queues }: DashData): readonly Line[] {
  const view = queues.find((one) => one.queue === queue);
  const states = TASK_STATES.map((one) => {
    const text = `${one} ${view === undefined ? '-' : formatCount(view[one])}`;
    return one === state ? `[${text}]` : ` ${text} `;
  });
  const where = [queue, ...(group === undefined ? [] : [group])]
    .map((name) => printable(name ?? ''))
    .join(' / ');
  const paused = view?.paused === true ? '  paused' : '';
  return [{ text: `${where}${paused}  page ${page}`, style: 'bold' }, { text: states.join(' ') }];
}

function listLines(state: DashState, data: DashData, frame: DashFrame, room: number): readonly Line[] {
  if (listShown(state) !== undefined) {
    return rowLines(taskRows(data.tasks, state.state, {}, frame.nowMs), state.row, room, frame);
  }
  const groups = data.groups.map(({ group, size }) => [printable(group), formatCount(size)]);
  return rowLines([['group', 'tasks'], ...groups], state.row, room, frame, ['left', 'right']);
}

/** The chosen one is marked, and among those that there is room for. */
function rowLines(
  rows: readonly string[][],
  row: number,
  room: number,
  { isReading }: DashFrame,
  aligns: readonly ('left' | 'right')[] = [],
): readonly Line[] {
  const [head = '', ...lines] = plainTable([...rows], aligns);
  const from = Math.max(0, Math.min(row - Math.floor(room / 2), lines.length - room));
  const shown = lines
    .slice(from, from + room)
    .map((text, at): Line =>
      from + at === row ? { text: `> ${text}`, style: 'inverse' } : { text: `  ${text}` },
    );
  return [
    { text: `  ${head}`, style: 'bold' },
    ...(shown.length === 0 ? [{ text: isReading ? '  …' : '  there are none' }] : shown),
  ];
}

function details(all: readonly Detail[]): readonly Line[] {
  return plainTable(
    all.map(([name, text]) => [name, text]),
    [],
  ).map((text) => ({ text: `  ${text}` }));
}
