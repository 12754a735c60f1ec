import type { JSX } from 'preact';
import { TASK_STATES, type TaskState } from '../../tasks/task-state.ts';
import type { LiveJson, QueueJson } from '../dashboard-json.ts';
import { bytes, compact, count, durationText, percent, plural, rate } from './format.ts';
import { useLive } from './live.ts';
import { Pager, Table, type Column } from './lists.tsx';
import { Card, Empty, Figures, Name, NameLink, PageLayout, Skeleton, Tag } from './parts.tsx';
import { ratesOf, sumOf, useRates, type Rates } from './recent.ts';
import { pageOf, queueHref, replace, to, useRoute, withChange, type PageRoute } from './route.ts';
import { rateFigures, Sparkline } from './sparkline.tsx';
import { STATE_LABELS, stateColour, StateLabel } from './states.tsx';

const PAGE_SIZE = 50;

/** All queues, and what is wrong with them. */
export function OverviewPage({ source = '' }: { readonly source: string | undefined }): JSX.Element {
  const { live } = useLive();
  return (
    <PageLayout title="Overview" note={<Name text={source} mono />}>
      {live === undefined ? (
        <Skeleton lines={10} />
      ) : (
        <>
          <QueueFigures live={live} />
          <Unserved queues={live.queues} />
          <QueueList live={live} />
        </>
      )}
    </PageLayout>
  );
}

function QueueFigures({ live }: { readonly live: LiveJson }): JSX.Element {
  const { queues } = live;
  const latencyMs = Math.max(0, ...queues.map((queue) => queue.latencyMs));
  const [today, failedToday] = [sumOf(queues, 'processed'), sumOf(queues, 'failed')];
  const [processedPerS, failedPerS] = [sumOf(queues, 'processedPerS'), sumOf(queues, 'failedPerS')];
  const inState = (state: TaskState): string => compact(sumOf(queues, state));
  const search = (state: TaskState): object => ({ href: to(['search'], { state }) });
  return (
    <Figures
      label="All queues"
      list={[
        ...rateFigures(ratesOf(), processedPerS, failedPerS, to(['charts'])),
        ['Pending', inState('pending'), `longest ${durationText(latencyMs)}`, search('pending')],
        ['Active', inState('active'), `on ${plural(live.serverCount, 'server')}`, { href: to(['servers']) }],
        ['Retry', inState('retry'), `${inState('scheduled')} scheduled`, search('retry')],
        ['Archived', inState('archived'), 'given up', search('archived')],
        ['Today', compact(today), `${percent(failedToday, today)} failed`],
      ]}
    />
  );
}

function Unserved({ queues }: { readonly queues: readonly QueueJson[] }): JSX.Element | null {
  const unserved = queues.filter(({ hasServer, pending }) => !hasServer && pending > 0);
  if (unserved.length === 0) return null;
  return (
    <p class="banner warn">
      <strong>
        No server works on {unserved.length === 1 ? 'this queue' : `these ${unserved.length} queues`}:
      </strong>{' '}
      {unserved.slice(0, 5).map(({ queue, pending }) => (
        <a key={queue} href={queueHref(queue)}>
          <Name text={queue} /> ({compact(pending)} pending)
        </a>
      ))}
      {unserved.length > 5 && <span>and {unserved.length - 5} more</span>}
    </p>
  );
}

/** A column of the list of queues, with the name of its order in the address and the number that decides it. */
interface QueueColumn extends Column<QueueJson> {
  readonly by?: string;
  readonly value?: (queue: QueueJson) => number;
}

function columnsOf(states: readonly TaskState[]): readonly QueueColumn[] {
  return [
    { head: 'Queue', by: 'queue', isHeading: true, cell: (queue) => <QueueName queue={queue} /> },
    {
      ...{ head: 'Latency', by: 'latency', kind: 'number', value: ({ latencyMs }) => latencyMs },
      cell: ({ latencyMs }) => (latencyMs === 0 ? <span class="zero">0</span> : durationText(latencyMs)),
    },
    rateColumn('Processed/s', 'throughput', 'processed'),
    rateColumn('Failed/s', 'errors', 'failed'),
    ...states.map((state): QueueColumn => ({
      ...{ head: <StateLabel state={state} />, label: STATE_LABELS[state], by: state, kind: 'number' },
      value: (queue) => queue[state],
      cell: (queue) => (
        <a class={queue[state] === 0 ? 'quiet zero' : 'quiet'} href={queueHref(queue.queue, { state })}>
          {compact(queue[state])}
        </a>
      ),
    })),
    { head: 'Memory', kind: 'number memory', cell: ({ memoryUsageBytes }) => bytes(memoryUsageBytes) },
  ];
}

function rateColumn(head: string, by: string, what: keyof Rates): QueueColumn {
  const rateOf = (queue: QueueJson): number | undefined => queue[`${what}PerS`];
  const tone = what === 'failed' ? 'bad' : 'accent';
  return {
    ...{ head, by, kind: 'number spark', value: (queue) => rateOf(queue) ?? 0 },
    cell: (queue) => (
      <>
        <Sparkline values={ratesOf(queue.queue)[what]} tone={tone} label={`${what} in the last minute`} />
        <span>{rate(rateOf(queue))}</span>
      </>
    ),
  };
}

/** A column whose head is a link to that order, if it has one. */
function withSort(column: QueueColumn, sort: string, route: PageRoute): QueueColumn {
  const { head, by, label = head as string } = column;
  if (by === undefined) return column;
  const isName = by === 'queue';
  return {
    ...{ ...column, label },
    sort: by !== sort ? 'none' : isName ? 'ascending' : 'descending',
    head: (
      <a href={withChange(route, { sort: isName ? undefined : by, page: undefined })}>
        {head}
        {by === sort && <span aria-hidden="true">{isName ? ' ↑' : ' ↓'}</span>}
      </a>
    ),
  };
}

function QueueList({ live }: { readonly live: LiveJson }): JSX.Element {
  const route = useRoute();
  const filter = route.query.get('filter') ?? '';
  const sort = route.query.get('sort') ?? 'queue';
  const page = pageOf(route);
  // Few programs have groups: the column is there for those.
  const states = TASK_STATES.filter((state) => state !== 'aggregating' || sumOf(live.queues, state) > 0);
  const columns = columnsOf(states);
  const { value = () => 0 } = columns.find(({ by }) => by === sort) ?? {};
  const found = live.queues
    .filter(({ queue }) => queue.toLowerCase().includes(filter.toLowerCase()))
    .sort((a, b) => value(b) - value(a));
  const shown = found.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  useRates(shown.slice(0, 24).map(({ queue }) => queue));
  if (live.queueCount === 0) {
    return <Empty title="There are no queues yet">A queue appears when its first task is enqueued.</Empty>;
  }
  return (
    <Card
      title={`Queues (${count(live.queueCount)})`}
      aside={
        <input
          type="search"
          class="filter"
          placeholder="Filter by name"
          aria-label="Filter queues by name"
          value={filter}
          onInput={({ currentTarget }) => {
            replace(withChange(route, { filter: currentTarget.value, page: undefined }));
          }}
        />
      }
    >
      <Table
        kind="queues"
        columns={columns.map((column) => withSort(column, sort, route))}
        rows={shown}
        keyOf={({ queue }) => queue}
      />
      {found.length === 0 && <Empty title={`No queue has “${filter}” in its name`} />}
      {live.queues.length < live.queueCount && (
        <p class="foot">
          The {count(live.queues.length)} queues with the most tasks of {count(live.queueCount)} are shown.
        </p>
      )}
      <Pager pages={Math.ceil(found.length / PAGE_SIZE)} />
    </Card>
  );
}

function QueueName({ queue }: { readonly queue: QueueJson }): JSX.Element {
  const held = (queue.held?.concurrency ?? 0) + (queue.held?.rate ?? 0);
  return (
    <>
      <NameLink kind="row-link" href={queueHref(queue.queue)} text={queue.queue} />
      {queue.paused && <Tag tone="warn">paused</Tag>}
      {!queue.hasServer && <Tag tone={queue.pending > 0 ? 'bad' : 'plain'}>no server</Tag>}
      {held > 0 && <Tag title="Pending tasks that a limit holds back">{compact(held)} held</Tag>}
      <StateBar queue={queue} />
    </>
  );
}

/** How the tasks of a queue are spread over its states. The numbers beside it say the same. */
function StateBar({ queue }: { readonly queue: QueueJson }): JSX.Element {
  return (
    <span class="state-bar" aria-hidden="true">
      {queue.size > 0 &&
        TASK_STATES.filter((state) => queue[state] > 0).map((state) => (
          <span key={state} style={{ ...stateColour(state), flexGrow: queue[state] }} />
        ))}
    </span>
  );
}
