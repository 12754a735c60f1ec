import type { JSX } from 'preact';
import type { TaskOptionValue } from '../../tasks/task-options.ts';
import type { TaskDetailJson } from '../dashboard-json.ts';
import { path, write } from './api.ts';
import { ContentView, CopyButton } from './content-view.tsx';
import { asks, useAction, type Question } from './dialog.tsx';
import { clipped, clockTime, durationText, exactTime, manyLines, visible } from './format.ts';
import { Facts } from './lists.tsx';
import { Button, Card, Empty, Loaded, Name, NameLink, PageLayout, Tag, Time, useNow } from './parts.tsx';
import { goLater, queueHref, to } from './route.ts';
import { STATE_LABELS, StateLabel } from './states.tsx';
import { CHANGE_LABELS, Progress } from './task-table.tsx';
import { useData } from './use-data.ts';

/** Everything that is known of a task, and what can be done with it. */
export function TaskPage({ queue, id }: { readonly queue: string; readonly id: string }): JSX.Element {
  const read = useData<TaskDetailJson>(path('queues', queue, 'tasks', id));
  const task = read.data;
  return (
    <PageLayout
      title={
        <>
          <Name text={task?.type ?? 'Task'} />
          {task !== undefined && read.status !== 404 && (
            <span class="head-state">
              <StateLabel state={task.state} />
            </span>
          )}
          {task?.isOrphaned === true && <Tag tone="bad">server lost</Tag>}
        </>
      }
      note={
        <span class="crumbs">
          <NameLink href={queueHref(queue)} text={queue} />
          <span aria-hidden="true">/</span>
          <Name text={id} mono />
          <CopyButton text={id} name="the id" />
        </span>
      }
      actions={task !== undefined && read.status !== 404 && <TaskActions task={task} reload={read.reload} />}
    >
      {read.status === 404 ? (
        <Empty title="There is no such task any more">
          It was done without retention, or deleted. <a href={queueHref(queue)}>The tasks of its queue</a>
        </Empty>
      ) : (
        <Loaded of={read} lines={14}>
          {(loaded) => (
            <div class="columns">
              <div>
                <Card title="Payload">
                  <ContentView content={loaded.payload} name="the payload" />
                </Card>
                {loaded.progress !== undefined && (
                  <Card title="Progress">
                    <div class="pad">
                      <Progress json={loaded.progress} />
                    </div>
                  </Card>
                )}
                {loaded.lastError !== '' && <ErrorOf task={loaded} />}
                {loaded.result !== undefined && (
                  <Card title="Result">
                    <ContentView content={loaded.result} name="the result" />
                  </Card>
                )}
              </div>
              <div>
                <Timeline task={loaded} />
                <Details task={loaded} />
                <Headers task={loaded} />
              </div>
            </div>
          )}
        </Loaded>
      )}
    </PageLayout>
  );
}

const VERBS = { ...CHANGE_LABELS, cancel: 'Cancel run' } as const;
type Action = keyof typeof VERBS;
/** In the order of their buttons. */
const REPORTS = {
  run: 'The task is pending now.',
  archive: 'The task is archived.',
  cancel: 'Its server was asked to cancel the run.',
  delete: 'The task is deleted.',
} as const satisfies Record<Action, string>;
const ACTIONS = Object.keys(REPORTS) as Action[];

function TaskActions(props: { readonly task: TaskDetailJson; readonly reload: () => void }): JSX.Element {
  const { task, reload } = props;
  const [isBusy, perform] = useAction();
  const act = async (action: Action): Promise<string> => {
    const leave = goLater(queueHref(task.queue, { state: task.state }));
    await write('POST', `${path('queues', task.queue, 'tasks', task.id)}/${action}`);
    if (action === 'delete') leave();
    else reload();
    return REPORTS[action];
  };
  const question = (action: Action): Question => ({
    title: `${VERBS[action]}?`,
    body: (
      <p>
        <Name text={task.type} /> in {STATE_LABELS[task.state].toLowerCase()}
        {action === 'delete' && ': it cannot be brought back'}.
      </p>
    ),
    verb: VERBS[action],
    isDangerous: action !== 'archive',
    act: () => act(action),
  });
  return (
    <>
      {ACTIONS.filter((action) => task.actions.includes(action)).map((action) => (
        <Button
          key={action}
          label={VERBS[action]}
          class={action === 'delete' || action === 'cancel' ? 'danger quiet' : ''}
          isBusy={isBusy}
          onClick={action === 'run' ? () => void perform(() => act(action)) : asks(question(action))}
        />
      ))}
      <a class="button" href={to(['search'], { type: task.type, queue: [task.queue] })}>
        Similar tasks
      </a>
    </>
  );
}

function ErrorOf({ task }: { readonly task: TaskDetailJson }): JSX.Element {
  return (
    <Card
      title="Last error"
      kind="error-card"
      aside={
        <span class="aside">
          <Time atMs={task.lastFailedAtMs} />
          <CopyButton text={task.lastError} name="the error" />
        </span>
      }
    >
      {/* Focusable, so that the keyboard can scroll it. */}
      <pre tabIndex={0} aria-label="The last error">
        {manyLines(clipped(task.lastError, 200_000))}
      </pre>
    </Card>
  );
}

/** What is known of the life of the task; brokers keep the last failure only, and the number of them. */
function momentsOf(task: TaskDetailJson): { readonly atMs: number; what: string; tone: string }[] {
  const { state, retried, run } = task;
  const moments: readonly (readonly [number | undefined, what: string, tone: string])[] = [
    [task.lastFailedAtMs, retried > 1 ? `Failed, ${retried} times so far` : 'Failed', 'bad'],
    [run?.startedAtMs, 'This run started', 'accent'],
    [task.completedAtMs, 'Completed', 'good'],
    [state === 'active' ? undefined : task.nextProcessAtMs, state === 'retry' ? 'Next try' : 'Due', 'accent'],
    [run?.deadlineMs ?? task.deadlineMs, 'Deadline', 'plain'],
    [task.expiresAtMs, 'Removed', 'plain'],
  ];
  return moments
    .flatMap(([atMs, what, tone]) => (atMs === undefined ? [] : [{ atMs, what, tone }]))
    .sort((a, b) => a.atMs - b.atMs);
}

function Timeline({ task }: { readonly task: TaskDetailJson }): JSX.Element {
  const moments = momentsOf(task);
  const nowMs = useNow();
  return (
    <Card title="Attempts" aside={<span class="aside">{`${task.retried} of ${task.maxRetry} retries`}</span>}>
      <ol class="timeline">
        {moments.map(({ atMs, what, tone }) => (
          <li key={what} class={`${tone} ${atMs > nowMs ? 'ahead' : ''}`}>
            <span>{what}</span>
            <span class="faint" title={exactTime(atMs)}>
              <Time atMs={atMs} /> · {clockTime(atMs)}
            </span>
          </li>
        ))}
        {moments.length === 0 && (
          <li class="plain">{task.state === 'pending' ? 'Waits for a server' : 'Nothing yet'}</li>
        )}
      </ol>
    </Card>
  );
}

function Details({ task }: { readonly task: TaskDetailJson }): JSX.Element {
  const { queue, uniqueKey = '', run } = task;
  const lease = task.isOrphaned
    ? 'expired: its server is lost, and the task will be recovered'
    : 'held by its server';
  const facts: readonly (readonly [term: string, value: JSX.Element | string | false])[] = [
    ['Queue', <NameLink href={queueHref(queue)} text={queue} />],
    ...task.options.map((option) => [capitalized(option.label), optionFact(option, queue)] as const),
    ['Unique lock', uniqueKey !== '' && <Name text={uniqueKey} mono />],
    ['Lease', task.state === 'active' && lease],
    ['Server', run !== undefined && <NameLink href={to(['servers'])} text={run.server} mono />],
  ];
  return (
    <Card title="Details">
      <Facts list={facts} />
    </Card>
  );
}

const capitalized = (label: string): string => label.charAt(0).toUpperCase() + label.slice(1);

/** The value of an option, with a link to what else has it; false if there is none. Headers have a card of their own. */
function optionFact({ label, kind, value }: TaskOptionValue, queue: string): JSX.Element | string | false {
  if (kind === 'duration') return value === 0 ? 'none' : durationText(value as number);
  if (kind === 'time') return value === undefined ? 'none' : <Time atMs={value as number} />;
  if (kind === 'headers' || value === undefined || value === '') return false;
  const text = `${value as string | number}`;
  if (label === 'group')
    return <NameLink href={queueHref(queue, { state: 'aggregating', group: text })} text={text} />;
  if (label !== 'key') return <Name text={text} />;
  return (
    <>
      <Name text={text} /> <a href={queueHref(queue, { view: 'keys' })}>all keys</a>
    </>
  );
}

function Headers({ task }: { readonly task: TaskDetailJson }): JSX.Element | null {
  const headers = task.options.find(({ kind }) => kind === 'headers')?.value ?? {};
  const entries = Object.entries(headers as Readonly<Record<string, string>>);
  if (entries.length === 0) return null;
  return (
    <Card title="Headers">
      <Facts
        list={entries.map(([name, value]) => [visible(clipped(name, 100)), <Name text={value} mono />])}
      />
    </Card>
  );
}
