import { largestUnits, SECOND_MS, utcDay } from '../../core/units.ts';
import type { GroupInfo, QueueLimits, Rate } from '../../tasks/broker/broker.ts';
import type { Content, QueueView, ServerView, TaskView } from '../../tasks/http/asynqmon-json.ts';
import type { DailyStats } from '../../tasks/info.ts';
import { formatGoDuration } from '../../tasks/go-text.ts';
import { bytesJson, shorten, showBytes } from '../../tasks/payload.ts';
import { optionValuesOf, type OptionKind } from '../../tasks/task-options.ts';
import { TASK_STATES, type TaskState } from '../../tasks/task-state.ts';
import { formatBytes, formatCount, printable, toJson, type Columns, type Detail } from '../terminal/text.ts';

/** Maximum number of characters of a cell. */
const CELL_LENGTH = 60;

// Times.

/** Returns a time: `2026-11-21 16:43:59 UTC`. */
export function showTime(date: Date): string {
  if (Number.isNaN(date.getTime())) return '-';
  return date.toISOString().replace('T', ' ').replace(/\..*/, ' UTC');
}

/** Returns a duration in at most two units: `1d 2h`, `5m 3s`, `250ms`. */
export function showDuration(ms: number): string {
  if (ms < SECOND_MS) return `${Math.round(ms)}ms`;
  return largestUnits(SECOND_MS * Math.round(ms / SECOND_MS))
    .map((part) => part.join(''))
    .join(' ');
}

/** Returns a time from now: `in 5m`, `2d 3h ago`, `now`. */
export function showRelative(date: Date | undefined, nowMs: number): string {
  if (date === undefined || Number.isNaN(date.getTime())) return '-';
  const ms = date.getTime() - nowMs;
  if (Math.abs(ms) < SECOND_MS) return 'now';
  return ms > 0 ? `in ${showDuration(ms)}` : `${showDuration(-ms)} ago`;
}

// Bytes of users.

/** Returns bytes as text if they are, or as hex. */
function showContent(content: Content | undefined, isHex: boolean, maxLength = Infinity): string {
  if (content === undefined) return '';
  if (!(content instanceof Uint8Array)) return shorten(content.shown, maxLength);
  return isHex ? shorten(Buffer.from(content).toString('hex'), maxLength) : showBytes(content, maxLength);
}

/** Returns the cell of a table for bytes. */
export function contentCell(content: Content | undefined, isHex = false): string {
  return showContent(content, isHex, CELL_LENGTH);
}

// Queues.

/** Returns the columns of a list of queues. That of held tasks is there if some are held: the list is as wide as a terminal without. */
export function queueColumns(queues: readonly QueueView[]): Columns<QueueView> {
  const countHeld = ({ held }: QueueView): number => (held === undefined ? 0 : held.concurrency + held.rate);
  const isHeld = queues.some((queue) => countHeld(queue) > 0);
  return [
    ['queue', ({ queue }) => queue],
    ['state', showPaused],
    ['size', ({ size }) => formatCount(size), 'right'],
    ...(isHeld ? [['held', (queue: QueueView) => formatCount(countHeld(queue)), 'right'] as const] : []),
    ['latency', ({ latencyMs }) => showDuration(latencyMs), 'right'],
    ['processed', ({ processed }) => formatCount(processed), 'right'],
    ['failed', ({ failed }) => formatCount(failed), 'right'],
    ['error rate', showErrorRate, 'right'],
    ['memory', ({ memoryUsageBytes }) => formatBytes(memoryUsageBytes), 'right'],
  ];
}

export const GROUP_COLUMNS: Columns<GroupInfo> = [
  ['group', ({ group }) => group],
  ['tasks', ({ size }) => formatCount(size), 'right'],
];

export function queueDetails(queue: QueueView): readonly Detail[] {
  const today = (count: number, total: number | undefined): string =>
    `today ${formatCount(count)}${total === undefined ? '' : `; ever ${formatCount(total)}`}`;
  return [
    ['queue', printable(queue.queue)],
    ['state', showPaused(queue)],
    ['size', formatCount(queue.size)],
    ...TASK_STATES.map((state): Detail => [state, formatCount(queue[state])]),
    ['groups', formatCount(queue.groups)],
    ...(queue.held === undefined ? [] : [['held', showHeld(queue.held) || '0'] as const]),
    ['latency', showDuration(queue.latencyMs)],
    ...(queue.runnableMs === undefined ? [] : [['runnable for', showDuration(queue.runnableMs)] as const]),
    ['memory', `about ${formatBytes(queue.memoryUsageBytes)}`],
    ['processed', today(queue.processed, queue.processedTotal)],
    ['failed', today(queue.failed, queue.failedTotal)],
    ['error rate', showErrorRate(queue)],
  ];
}

/** Returns how many tasks are held back by which limit; empty if none is. */
export function showHeld(held: NonNullable<QueueView['held']>): string {
  return (['concurrency', 'rate'] as const)
    .filter((kind) => held[kind] > 0)
    .map((kind) => `${formatCount(held[kind])} by ${kind}`)
    .join(', ');
}

/** Returns limits in the notation of the flags that set them. */
export function limitDetails(limits: QueueLimits | undefined): readonly Detail[] {
  if (limits === undefined) return [['limits', 'none']];
  const detailsOf = ({ concurrency, rate }: Omit<QueueLimits, 'perKey'>, of: string): readonly Detail[] => [
    ...(concurrency === undefined ? [] : [[`${of}concurrency`, formatCount(concurrency)] as const]),
    ...(rate === undefined ? [] : [[`${of}rate`, showRate(rate)] as const]),
  ];
  return [...detailsOf(limits, ''), ...detailsOf(limits.perKey ?? {}, 'key ')];
}

function showRate({ tasks, perMs, burst = tasks }: Rate): string {
  const time = formatGoDuration(perMs).replace(/(?<=[hm])0[ms]/g, ''); // 1m, not 1m0s
  return `${tasks}/${time}, burst ${burst}`;
}

export function showErrorRate({ processed, failed }: Pick<DailyStats, 'processed' | 'failed'>): string {
  return processed === 0 ? '-' : `${((failed / processed) * 100).toFixed(2)} %`;
}

function showPaused({ paused }: QueueView): string {
  return paused ? 'paused' : 'run';
}

// Tasks.

/** Returns the columns of a list of tasks: asynq's. */
export function taskColumns(state: TaskState, nowMs: number, isHex = false): Columns<TaskView> {
  const error: Columns<TaskView>[number] = ['last error', ({ lastError }) => shorten(lastError, CELL_LENGTH)];
  const failed: Columns<TaskView>[number] = [
    'last failed',
    ({ lastFailedAt }) => showRelative(lastFailedAt, nowMs),
  ];
  const due = ({ nextProcessAt }: TaskView): string => showRelative(nextProcessAt, nowMs);
  const columns: Readonly<Record<TaskState, Columns<TaskView>>> = {
    active: [['orphaned', ({ isOrphaned }) => (isOrphaned === true ? 'yes' : 'no')]],
    pending: [],
    aggregating: [['group', ({ group = '' }) => group]],
    scheduled: [['runs', due]],
    retry: [
      ['next retry', due],
      error,
      failed,
      ['retried', ({ retried, maxRetry }) => `${retried}/${maxRetry}`],
    ],
    archived: [failed, error],
    completed: [
      ['completed', ({ completedAt }) => showRelative(completedAt, nowMs)],
      ['result', ({ result }) => contentCell(result, isHex)],
    ],
  };
  return [
    ['id', ({ id }) => id],
    ['type', ({ type }) => type],
    ['payload', ({ payload }) => contentCell(payload, isHex)],
    ...columns[state],
  ];
}

/** Returns what is known of a task; empty fields are left out. */
export function taskDetails(task: TaskView, nowMs: number, isHex = false): readonly Detail[] {
  const when = (date: Date | undefined): string =>
    date === undefined ? '' : `${showTime(date)} (${showRelative(date, nowMs)})`;
  const show: Readonly<Record<OptionKind, (value: never) => string | readonly string[]>> = {
    count: String,
    duration: (ms: number) => (ms === 0 ? '' : showDuration(ms)),
    headers: (headers: object) => Object.entries(headers).map((header) => printable(header.join(': '))),
    text: printable,
    time: when,
  };
  const options = optionValuesOf(task).flatMap(({ label, kind, value }): Detail[] =>
    value === undefined ? [] : [show[kind](value as never)].flat().map((text) => [label, text]),
  );
  const details: Detail[] = [
    ['id', printable(task.id)],
    ['queue', printable(task.queue)],
    ['type', printable(task.type)],
    ['state', task.isOrphaned === true ? `${task.state}, orphaned` : task.state],
    ['retried', `${task.retried} of ${task.maxRetry}`],
    ['next process', when(task.nextProcessAt)],
    ['last failed', when(task.lastFailedAt)],
    ['last error', printable(task.lastError)],
    ['completed', when(task.completedAt)],
    ...options,
    ['progress', task.progress === undefined ? '' : toJson(task.progress, 0)],
    ['payload', printable(showContent(task.payload, isHex))],
    ['result', printable(showContent(task.result, isHex))],
  ];
  return details.filter(([, text]) => text !== '');
}

// For --json. A queue, a group and a key are printed as they are.

/**
 * Returns an info as `--json` prints it: as `TaskInfo.toJSON` does, with bytes as text. A text of the HTTP API has the encoding `shown`.
 * A field without a value is left out.
 */
export function infoJson(info: object): object {
  if ('toJSON' in info) return info;
  const fields = Object.entries(info).map(([name, value]: [string, unknown]) => {
    if (!CONTENTS.includes(name) || value === undefined) return { [name]: value };
    const content = value as Content;
    if (content instanceof Uint8Array) return bytesJson(name, content);
    return { [name]: content.shown, [`${name}Encoding`]: 'shown' };
  });
  return Object.assign({}, ...fields) as object;
}

/** Fields with bytes of users. */
const CONTENTS: readonly string[] = ['payload', 'taskPayload', 'result'];

export function serverJson(server: ServerView): object {
  return { ...server, activeWorkers: server.activeWorkers.map(infoJson) };
}

export function dayJson({ date, processed, failed }: DailyStats): object {
  return { date: utcDay(date.getTime()), processed, failed };
}
