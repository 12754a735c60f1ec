import type { JSX } from 'preact';
import { TASK_STATES, isTaskState, type TaskChange, type TaskState } from '../../tasks/task-state.ts';
import type { ChangedJson, QueueDetailJson, TaskListJson } from '../dashboard-json.ts';
import { may, path, withQuery, write } from './api.ts';
import { asks, useAction, type Question } from './dialog.tsx';
import { bytes, clipped, compact, count, durationText, percent, plural, visible } from './format.ts';
import { useLive } from './live.ts';
import { lazy } from './lazy.tsx';
import { Pager } from './lists.tsx';
import { Button, Card, Empty, Figures, Loaded, Name, PageLayout, Tabs, Tag } from './parts.tsx';
import { ratesOf, useRates } from './recent.ts';
import { goLater, pageOf, queueHref, to, useRoute, withChange, type PageRoute } from './route.ts';
import { rateFigures } from './sparkline.tsx';
import { DayList, GroupList, KeyList } from './queue-views.tsx';
import { STATE_LABELS, StateLabel } from './states.tsx';
import { ChangeButtons, CHANGE_LABELS, changeReport, TaskTable } from './task-table.tsx';
import { useData, type Data } from './use-data.ts';

const LimitsEditor = lazy(() => import('./limits-editor.tsx').then((file) => file.LimitsEditor));

const PAGE_SIZE = 25;

const VIEW_LABELS = { keys: 'Keys', limits: 'Limits', days: 'Days' } as const;
type View = keyof typeof VIEW_LABELS;
const VIEWS = Object.keys(VIEW_LABELS) as View[];

/** One queue: its tasks by state, and everything about it. The tab is in the address: `?state=retry`, `?view=limits`. */
export function QueuePage({ queue }: { readonly queue: string }): JSX.Element {
  const detail = useData<QueueDetailJson>(path('queues', queue));
  useRates([queue]);
  const data = detail.data;
  return (
    <PageLayout
      title={
        <>
          <Name text={queue} />
          {data?.queue.paused === true && <Tag tone="warn">paused</Tag>}
          {data?.queue.hasServer === false && <Tag tone="bad">no server works on this queue</Tag>}
        </>
      }
      actions={data !== undefined && <QueueActions queue={queue} detail={detail} />}
    >
      <Loaded of={detail} lines={12}>
        {(loaded) => (
          <>
            <QueueFigures detail={loaded} />
            <QueueTabs detail={loaded} />
            <QueueView queue={queue} detail={loaded} reload={detail.reload} />
          </>
        )}
      </Loaded>
    </PageLayout>
  );
}

function QueueActions(props: {
  readonly queue: string;
  readonly detail: Data<QueueDetailJson>;
}): JSX.Element {
  const { queue, detail } = props;
  const [isBusy, perform] = useAction();
  const isPaused = detail.data?.queue.paused === true;
  const turn = isPaused ? 'resume' : 'pause';
  const setPaused = async (): Promise<string> => {
    await write('POST', `${path('queues', queue)}/${turn}`);
    detail.reload();
    return isPaused ? 'The queue runs again.' : 'The queue is paused: servers take no more tasks from it.';
  };
  return (
    <>
      {may(turn) && (
        <Button
          label={isPaused ? 'Resume' : 'Pause'}
          isBusy={isBusy}
          // After the first click of a double click it is the other button.
          onClick={({ detail: clicks }) => void (clicks < 2 && perform(setPaused))}
        />
      )}
      {may('delete-queue') && (
        <Button label="Delete queue" class="danger quiet" onClick={asks(deletion(queue, detail.data))} />
      )}
    </>
  );
}

function deletion(queue: string, detail: QueueDetailJson | undefined): Question {
  const all = detail?.queue.size ?? 0;
  return {
    title: `Delete the queue and ${plural(all, 'task')}?`,
    body: (
      <>
        <p>
          <Name text={queue} />
        </p>
        <p>
          All of its tasks are deleted with it, and cannot be brought back. A queue with active tasks is
          refused.
        </p>
      </>
    ),
    verb: 'Delete queue',
    isDangerous: true,
    act: async () => {
      const leave = goLater(to([]));
      await write('DELETE', `${path('queues', queue)}${all > 0 ? '?force=1' : ''}`);
      leave();
      return `Deleted the queue ${clipped(visible(queue), 60)}.`;
    },
  };
}

function QueueFigures({ detail }: { readonly detail: QueueDetailJson }): JSX.Element {
  const { queue } = detail;
  const { live } = useLive();
  const rates = live?.queues.find((one) => one.queue === queue.queue);
  const held = queue.held ?? { concurrency: 0, rate: 0 };
  const { latencyMs, runnableMs, processed, failed } = queue;
  const latencyNote =
    runnableMs === undefined ? 'next pending task' : `${durationText(runnableMs)} if runnable`;
  const heldNote = `${compact(held.concurrency)} concurrency, ${compact(held.rate)} rate`;
  return (
    <Figures
      label="This queue"
      list={[
        ...rateFigures(ratesOf(queue.queue), rates?.processedPerS, rates?.failedPerS),
        ['Latency', durationText(latencyMs), latencyNote],
        ['Held by limits', compact(held.concurrency + held.rate), heldNote],
        ['Today', compact(processed), `${percent(failed, processed)} failed`],
        ['Memory', bytes(queue.memoryUsageBytes)],
      ]}
    />
  );
}

function viewOf(route: PageRoute): TaskState | View {
  const view = route.query.get('view');
  const known = VIEWS.find((name) => name === view);
  const state = route.query.get('state') ?? 'pending';
  return known ?? (isTaskState(state) ? state : 'pending');
}

function QueueTabs({ detail: { queue } }: { readonly detail: QueueDetailJson }): JSX.Element {
  const states = TASK_STATES.map((state) => ({
    id: state,
    label: <StateLabel state={state} />,
    count: compact(queue[state]),
    href: queueHref(queue.queue, { state }),
  }));
  const views = VIEWS.map((view) => ({
    id: view,
    label: VIEW_LABELS[view],
    href: queueHref(queue.queue, { view }),
  }));
  return <Tabs label="Tasks by state, and more" items={[...states, ...views]} current={viewOf(useRoute())} />;
}

interface ViewProps {
  readonly queue: string;
  readonly detail: QueueDetailJson;
  readonly reload: () => void;
}

function QueueView(props: ViewProps): JSX.Element {
  const { queue, detail, reload } = props;
  const route = useRoute();
  const view = viewOf(route);
  // Aggregating tasks are listed by their groups, and the groups first.
  if (view === 'aggregating' && !route.query.has('group')) return <GroupList detail={detail} />;
  if (isTaskState(view)) return <TasksInState key={view} {...props} state={view} />;
  if (view === 'keys') return <KeyList queue={queue} />;
  if (view === 'days') return <DayList detail={detail} />;
  return <LimitsEditor queue={queue} limits={detail.limits} onChanged={reload} />;
}

function TasksInState(props: ViewProps & { readonly state: TaskState }): JSX.Element {
  const { queue, state } = props;
  const route = useRoute();
  const group = route.query.get('group') ?? undefined;
  const query = { state, group, page: pageOf(route), size: PAGE_SIZE };
  const list = useData<TaskListJson>(withQuery(path('queues', queue, 'tasks'), query));
  const reload = (): void => {
    list.reload();
    props.reload();
  };
  return (
    <Card>
      <Loaded of={list} lines={8}>
        {({ tasks, total }) =>
          total === 0 && tasks.length === 0 ? (
            <Empty title={`No ${STATE_LABELS[state].toLowerCase()} tasks`}>{EMPTY_NOTES[state]}</Empty>
          ) : (
            <>
              <div class="list-head">
                <span>
                  {plural(total, 'task')}
                  {group !== undefined && (
                    <>
                      {' '}
                      in the group <Name text={group} />{' '}
                      <a href={withChange(route, { group: undefined, page: undefined })}>all groups</a>
                    </>
                  )}
                </span>
                <span class="spring" />
                <AllActions queue={queue} state={state} total={total} group={group} onDone={reload} />
              </div>
              <TaskTable tasks={tasks} label={`${STATE_LABELS[state]} tasks`} onChanged={reload} />
              <Pager pages={Math.ceil(total / PAGE_SIZE)} />
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

const EMPTY_NOTES: Readonly<Record<TaskState, string>> = {
  active: 'No server runs a task of this queue now.',
  pending: 'Nothing waits: every task that is due has been taken.',
  scheduled: 'No task was enqueued for later.',
  retry: 'No task has failed and waits for its next try.',
  archived: 'No task has failed for the last time.',
  completed: 'Completed tasks are kept only if they have a retention.',
  aggregating: 'No task waits for its group.',
};

function AllActions(props: {
  readonly queue: string;
  readonly state: TaskState;
  readonly group: string | undefined;
  readonly total: number;
  readonly onDone: () => void;
}): JSX.Element {
  const { queue, state, group, total, onDone } = props;
  const label = STATE_LABELS[state].toLowerCase();
  const question = (change: TaskChange): Question => ({
    title: `${CHANGE_LABELS[change]}: all ${count(total)} ${label} tasks?`,
    body: (
      <p>
        Every {label} task of <Name text={queue} />
        {group !== undefined && ' in this group'}, on all pages.
        {change === 'delete' && ' They cannot be brought back.'}
      </p>
    ),
    verb: `${CHANGE_LABELS[change]} all`,
    isDangerous: change === 'delete',
    act: async () => {
      const to = path('queues', queue, 'tasks', 'change');
      const { changed } = (await write('POST', to, { state, change, group })) as ChangedJson;
      onDone();
      return changeReport(change, changed);
    },
  });
  return <ChangeButtons states={[state]} suffix=" all" press={(change) => asks(question(change))} />;
}
