import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { TASK_CHANGES, type TaskChange, type TaskState } from '../../tasks/task-state.ts';
import type { TaskJson } from '../dashboard-json.ts';
import { may, messageOfError, path, write } from './api.ts';
import { ContentLine } from './content-view.tsx';
import { asks, type Question } from './dialog.tsx';
import { clipped, manyLines, oneLine, plural, visible } from './format.ts';
import { numbers, Table, type Column } from './lists.tsx';
import { Button, Name, NameLink, Tag, Time } from './parts.tsx';
import { queueHref, taskHref } from './route.ts';
import { STATE_LABELS, StateLabel, StateShape } from './states.tsx';

/** Tasks in a table, with a checkbox each, and what can be done with those that are checked. */

export const CHANGE_LABELS = { run: 'Run now', archive: 'Archive', delete: 'Delete' } as const;
const DONE = { run: 'Moved to pending', archive: 'Archived', delete: 'Deleted' } as const;
const CHANGES = ['run', 'archive', 'delete'] as const;

/** A button for each change that the session may make to tasks of some states; of one state at least. */
export function ChangeButtons(props: {
  readonly states: readonly TaskState[];
  readonly press: (change: TaskChange) => () => void;
  /** What stands behind the name of the change. */
  readonly suffix?: string;
  readonly danger?: string;
}): JSX.Element {
  const { states, press, suffix = '', danger = 'danger quiet' } = props;
  const changes = CHANGES.filter(
    (change) => may(change) && states.some((state) => !TASK_CHANGES[change].refused.includes(state)),
  );
  return (
    <>
      {changes.map((change) => (
        <Button
          key={change}
          label={`${CHANGE_LABELS[change]}${suffix}`}
          class={change === 'delete' ? danger : ''}
          onClick={press(change)}
        />
      ))}
    </>
  );
}

export function changeReport(change: TaskChange, changed: number): string {
  return `${DONE[change]}: ${plural(changed, 'task')}.`;
}

const keyOf = (task: TaskJson): string => `${task.queue}\n${task.id}`;

export function TaskTable(props: {
  readonly tasks: readonly TaskJson[];
  readonly label: string;
  /** Whether they are of several queues and states. */
  readonly isMixed?: boolean;
  readonly onChanged: () => void;
}): JSX.Element {
  const { tasks, isMixed = false } = props;
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const isPicked = (task: TaskJson): boolean => picked.has(keyOf(task));
  const selected = tasks.filter(isPicked);
  const pick = (some: readonly TaskJson[], isPick: boolean): void => {
    const next = new Set(picked);
    some.map(keyOf).forEach((key) => (isPick ? next.add(key) : next.delete(key)));
    setPicked(next);
  };
  const all = tasks.length > 0 && selected.length === tasks.length;
  const pickAll = (
    <input
      type="checkbox"
      aria-label="Select all tasks of this page"
      checked={all}
      indeterminate={selected.length > 0 && !all}
      onChange={() => pick(tasks, !all)}
    />
  );
  const pickOne = (task: TaskJson): JSX.Element => (
    <input
      type="checkbox"
      aria-label={`Select task ${clipped(visible(task.id), 60)}`}
      checked={isPicked(task)}
      onChange={({ currentTarget }) => pick([task], currentTarget.checked)}
    />
  );
  return (
    <>
      {selected.length > 0 && (
        <SelectedBar
          selected={selected}
          onDone={() => {
            setPicked(new Set());
            props.onChanged();
          }}
        />
      )}
      <Table
        kind={isMixed ? 'tasks mixed' : 'tasks'}
        label={props.label}
        columns={[
          ...(CHANGES.some(may) ? [{ head: pickAll, kind: 'pick', cell: pickOne }] : []),
          TASK_COLUMN,
          ...(isMixed ? PLACE_COLUMNS : []),
          ...STATE_COLUMNS,
        ]}
        rows={tasks}
        keyOf={keyOf}
        isPicked={isPicked}
      />
    </>
  );
}

const TASK_COLUMN: Column<TaskJson> = {
  ...{ head: 'Task', label: '', kind: 'task-name' },
  cell: ({ queue, id, type }) => <TaskLink queue={queue} id={id} type={type} />,
};

/** Where a task is, for tasks of several queues and states. */
const PLACE_COLUMNS: readonly Column<TaskJson>[] = [
  {
    ...{ head: 'Queue', kind: 'queue-name' },
    cell: ({ queue }) => <NameLink kind="quiet" href={queueHref(queue)} text={queue} />,
  },
  { head: 'State', cell: ({ state }) => <StateLabel state={state} /> },
];

const STATE_COLUMNS: readonly Column<TaskJson>[] = [
  {
    ...{ head: 'Payload', label: '', kind: 'payload' },
    cell: (task) => (
      <div>
        <ContentLine content={task.payload} />
        <div class="details">
          <Details task={task} />
        </div>
      </div>
    ),
  },
  numbers('Tries', ({ retried, maxRetry }) => (
    <span>
      {retried}
      <span class="faint">/{maxRetry}</span>
    </span>
  )),
  { head: 'When', kind: 'when', cell: (task) => <Time atMs={whenOf(task)} /> },
];

/** The type of a task, which leads to it, above its id. */
export function TaskLink(props: {
  readonly queue: string;
  readonly id: string;
  readonly type: string;
}): JSX.Element {
  const { queue, id, type } = props;
  return (
    <>
      <NameLink kind="row-link" href={taskHref(queue, id)} text={type} />
      <span class="faint mono small">
        <Name text={id} />
      </span>
    </>
  );
}

function Details({ task }: { readonly task: TaskJson }): JSX.Element {
  return (
    <>
      {task.isOrphaned === true && <Tag tone="bad">server lost</Tag>}
      {labelTag('Group', task.group)}
      {labelTag('Key', task.key)}
      {task.state === 'active' && task.progress !== undefined && <Progress json={task.progress} />}
      {task.lastError !== '' && (
        <span class="error-line" title={manyLines(clipped(task.lastError))}>
          {oneLine(task.lastError, 160)}
        </span>
      )}
      {task.state === 'completed' && task.result !== undefined && <ContentLine content={task.result} />}
    </>
  );
}

function labelTag(title: string, text = ''): JSX.Element | false {
  return (
    text !== '' && (
      <Tag title={title}>
        <Name text={text} />
      </Tag>
    )
  );
}

/** A bar if the handler reports a share, a number of per cent, or `{ done, total }`; its JSON otherwise. */
export function Progress({ json }: { readonly json: string }): JSX.Element {
  const share = shareOf(json);
  if (share === undefined) return <span class="mono line">{oneLine(json, 120)}</span>;
  const text = `${Math.round(share * 100)} %`;
  return (
    <span class="progress" title={clipped(json)}>
      <progress max={1} value={share} aria-label="Progress" />
      {text}
    </span>
  );
}

function shareOf(json: string): number | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof value === 'object' && value !== null) {
    const fields = value as Readonly<Record<string, unknown>>;
    const done = fields['done'] ?? fields['current'] ?? fields['processed'];
    const total = fields['total'] ?? fields['of'];
    if (typeof done === 'number' && typeof total === 'number' && total > 0) return Math.min(1, done / total);
    value = fields['percent'] ?? fields['progress'];
  }
  if (typeof value !== 'number' || value < 0 || value > 100) return undefined;
  return value <= 1 ? value : value / 100;
}

/** The time that matters in its state. */
function whenOf({
  state,
  run,
  nextProcessAtMs,
  completedAtMs,
  lastFailedAtMs,
}: TaskJson): number | undefined {
  if (state === 'active') return run?.startedAtMs;
  if (state === 'scheduled' || state === 'retry') return nextProcessAtMs;
  if (state === 'completed') return completedAtMs;
  return state === 'archived' ? lastFailedAtMs : (nextProcessAtMs ?? lastFailedAtMs);
}

function SelectedBar(props: {
  readonly selected: readonly TaskJson[];
  readonly onDone: () => void;
}): JSX.Element {
  const { selected } = props;
  const states = [...new Set(selected.map(({ state }) => state))];
  return (
    <div class="selected-bar" role="region" aria-label="Selected tasks">
      <strong>{plural(selected.length, 'task')} selected</strong>
      {states.map((state) => (
        <span key={state} class="state" title={STATE_LABELS[state]}>
          <StateShape state={state} />
        </span>
      ))}
      <span class="spring" />
      <ChangeButtons
        states={states}
        danger="danger"
        press={(change) => asks(questionOf(change, selected, props.onDone))}
      />
    </div>
  );
}

function questionOf(change: TaskChange, selected: readonly TaskJson[], onDone: () => void): Question {
  const able = selected.filter(({ state }) => !TASK_CHANGES[change].refused.includes(state));
  const refused = selected.length - able.length;
  return {
    title: `${CHANGE_LABELS[change]}: ${plural(able.length, 'task')}?`,
    body: (
      <>
        <p>{change === 'delete' ? 'They cannot be brought back.' : 'Their state changes at once.'}</p>
        {refused > 0 && <p>{plural(refused, 'task')} in a state that refuses this will be left as it is.</p>}
      </>
    ),
    verb: CHANGE_LABELS[change],
    isDangerous: change === 'delete',
    act: async () => {
      const failed = await changeEach(change, able);
      onDone();
      const [reason] = failed;
      if (reason === undefined) return changeReport(change, able.length);
      throw new Error(
        `${changeReport(change, able.length - failed.length)} ${plural(failed.length, 'task')} refused it: ${reason}`,
      );
    },
  };
}

/** One request a task, for a page of them; the reason of each that was refused. */
async function changeEach(change: TaskChange, tasks: readonly TaskJson[]): Promise<string[]> {
  const outcomes = await Promise.allSettled(
    tasks.map(({ queue, id }) => write('POST', `${path('queues', queue, 'tasks', id)}/${change}`)),
  );
  return outcomes.flatMap((one) => (one.status === 'rejected' ? [messageOfError(one.reason)] : []));
}
