import { TASK_STATES } from '../../../tasks/task-state.ts';
import {
  detailLines,
  formatCount,
  harmless,
  plainTable,
  printable,
  type Detail,
} from '../../terminal/text.ts';
import { GROUP_COLUMNS, queueColumns, showHeld, showTime, taskColumns, taskDetails } from '../show.ts';
import { listShown, type DashData, type DashState } from './dash-state.ts';

export interface Line {
  readonly text: string;
  readonly style?: 'bold' | 'inverse' | 'red';
}

/** What is known of the data. */
export interface DashStatus {
  readonly name: string;
  /** Whether the data is being read for the first time. */
  readonly isReading: boolean;
  readonly error: string | undefined;
  /** When the data was read; undefined if it never was. */
  readonly readAtMs: number | undefined;
}

export interface DashFrame extends DashStatus {
  readonly nowMs: number;
  readonly height: number;
  readonly width: number;
}

const HELP: readonly Detail[] = [
  ['j, down', 'the next row'],
  ['k, up', 'the previous row'],
  ['enter', 'open the row: a queue, a group, a task'],
  ['h, left', 'the previous state: active, pending, …'],
  ['l, right', 'the next state'],
  ['n, p', 'the next page, the previous page'],
  ['q, escape', 'back; quit from the list of queues'],
  ['ctrl-c', 'quit'],
  ['?', 'this help'],
];

/** Lines above and below a list: title, selection, states in two lines, empty lines, error, keys. */
const LINES_AROUND = 9;

/** Marks of the selected row, and of the others. */
const MARKS = ['> ', '  '] as const;

export function rowsThatFit(height: number): number {
  return Math.max(1, height - LINES_AROUND);
}

/** Returns the lines of the screen, from the top; no more than it has. */
export function dashLines(state: DashState, data: DashData, frame: DashFrame): readonly Line[] {
  const body = state.isHelp ? details(HELP) : bodyOf(state, data, frame);
  const keys = state.isHelp
    ? 'any key: back'
    : 'j/k: row   enter: open   h/l: state   n/p: page   q: back   ?: help';
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
  const width = frame.width - MARKS[0].length;
  if (state.queue === undefined)
    return rowLines(plainTable(queueColumns(data.queues), data.queues, width), state, frame);
  if (state.taskId !== undefined) {
    const { task } = data;
    if (task !== undefined) return details(taskDetails(task, frame.nowMs));
    return [{ text: `  ${printable(state.taskId)} …` }];
  }
  const list =
    listShown(state) === undefined
      ? plainTable(GROUP_COLUMNS, data.groups, width)
      : plainTable(taskColumns(state.state, frame.nowMs), data.tasks, width);
  return [...queueLines(state, data, frame), ...rowLines(list, state, frame)];
}

function queueLines(
  { queue, state, group, page }: DashState,
  { queues }: DashData,
  { width }: DashFrame,
): readonly Line[] {
  const view = queues.find((one) => one.queue === queue);
  const states = TASK_STATES.map((one) => {
    const text = `${one} ${view === undefined ? '-' : formatCount(view[one])}`;
    return one === state ? `[${text}]` : ` ${text} `;
  });
  const where = [queue, ...(group === undefined ? [] : [group])]
    .map((name) => printable(name ?? ''))
    .join(' / ');
  const paused = view?.paused === true ? '  paused' : '';
  const held = view?.held === undefined ? '' : showHeld(view.held);
  const isHeld = held === '' ? '' : `  held: ${held}`;
  return [
    { text: `${where}${paused}${isHeld}  page ${page}`, style: 'bold' },
    ...linesOf(states, width).map((text) => ({ text })),
  ];
}

/** Returns words in lines that are at most `width` long. */
function linesOf(words: readonly string[], width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of words) {
    const line = lines.at(-1);
    if (line === undefined || `${line} ${word}`.trimEnd().length > width) lines.push(word);
    else lines.splice(-1, 1, `${line} ${word}`);
  }
  return lines;
}

/** Returns the head and the rows around the selected one, as many as fit. */
function rowLines(
  [head = '', ...lines]: readonly string[],
  { row }: DashState,
  { isReading, height }: DashFrame,
): readonly Line[] {
  const count = rowsThatFit(height);
  const from = Math.max(0, Math.min(row - Math.floor(count / 2), lines.length - count));
  const shown = lines
    .slice(from, from + count)
    .map((text, at): Line =>
      from + at === row ? { text: `${MARKS[0]}${text}`, style: 'inverse' } : { text: `${MARKS[1]}${text}` },
    );
  return [
    { text: `  ${head}`, style: 'bold' },
    ...(shown.length === 0 ? [{ text: isReading ? '  …' : '  there are none' }] : shown),
  ];
}

function details(all: readonly Detail[]): readonly Line[] {
  return detailLines(all).map((text) => ({ text: `  ${text}` }));
}
