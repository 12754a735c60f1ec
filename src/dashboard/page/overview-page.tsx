import type { ComponentChildren, JSX } from 'preact';
import { TASK_STATES, type TaskState } from '../../tasks/task-state.ts';
import type { LiveJson, QueueJson } from '../dashboard-json.ts';
import { bytes, compact, count, durationText, percent, plural, rate } from './format.ts';
import { useLive } from './live.ts';
import {
  Card,
  Empty,
  Figure,
  Name,
  PageLayout,
  Pager,
  Skeleton,
  stateColour,
  StateLabel,
  STATE_LABELS,
  Table,
  Tag,
  type Column,
} from './parts.tsx';
import { ratesOf, sumOf, useRates } from './recent.ts';
import { pageOf, queueHref, replace, to, useRoute, withChange } from './route.ts';
import { RateFigures, Sparkline } from './sparkline.tsx';

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
          <Figures live={live} />
          <Unserved queues={live.queues} />
          <QueueList live={live} />
        </>
      )}
    </PageLayout>
  );
}

const total = (queues: readonly QueueJson[], state: TaskState): number =>
  queues.reduce((sum, queue) => sum + queue[state], 0);

function Figures({ live }: { readonly live: LiveJson }): JSX.Element {
  const { queues } = live;
  const latencyMs = Math.max(0, ...queues.map((queue) => queue.latencyMs));
  const today = queues.reduce((sum, { processed }) => sum + processed, 0);
  const failedToday = queues.reduce((sum, queue) => sum + queue.failed, 0);
  const search = (state: TaskState): string => to(['search'], { state });
  return (
    <section class="figures" aria-label="All queues">
      <RateFigures
        recent={ratesOf()}
        processedPerS={sumOf(queues, 'processedPerS')}
        failedPerS={sumOf(queues, 'failedPerS')}
        href={to(['charts'])}
      />
      <Figure
        label="Pending"
        value={compact(total(queues, 'pending'))}
        note={`longest ${durationText(latencyMs)}`}
        href={search('pending')}
      />
      <Figure
        label="Active"
        value={compact(total(queues, 'active'))}
        note={`on ${plural(live.serverCount, 'server')}`}
        href={to(['servers'])}
      />
      <Figure
        label="Retry"
        value={compact(total(queues, 'retry'))}
        note={`${compact(total(queues, 'scheduled'))} scheduled`}
        href={search('retry')}
      />
      <Figure
        label="Archived"
        value={compact(total(queues, 'archived'))}
        note="given up"
        href={search('archived')}
      />
      <Figure label="Today" value={compact(today)} note={`${percent(failedToday, today)} failed`} />
    </section>
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

type Sort = 'queue' | 'latency' | 'throughput' | 'errors' | TaskState;

const sortValue = (queue: QueueJson, sort: Sort): number => {
  if (sort === 'queue') return 0;
  if (sort === 'latency') return queue.latencyMs;
  if (sort === 'throughput') return queue.processedPerS ?? 0;
  if (sort === 'errors') return queue.failedPerS ?? 0;
  return queue[sort];
};

function QueueList({ live }: { readonly live: LiveJson }): JSX.Element {
  const route = useRoute();
  const filter = route.query.get('filter') ?? '';
  const sort = (route.query.get('sort') ?? 'queue') as Sort;
  const page = pageOf(route);
  const found = live.queues
    .filter(({ queue }) => queue.toLowerCase().includes(filter.toLowerCase()))
    .sort((a, b) => sortValue(b, sort) - sortValue(a, sort));
  const shown = found.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  useRates(shown.slice(0, 24).map(({ queue }) => queue));
  // Few programs have groups: the column is there for those.
  const states = TASK_STATES.filter((state) => state !== 'aggregating' || total(live.queues, state) > 0);
  if (live.queueCount === 0) {
    return <Empty title="There are no queues yet">A queue appears when its first task is enqueued.</Empty>;
  }
  const column = (name: Sort, label: ComponentChildren): Column => {
    const isName = name === 'queue';
    const href = withChange(route, { sort: isName ? undefined : name, page: undefined });
    return {
      ...(isName ? {} : { kind: 'number' }),
      sort: name !== sort ? 'none' : isName ? 'ascending' : 'descending',
      head: (
        <a href={href}>
          {label}
          {name === sort && <span aria-hidden="true">{isName ? ' ↑' : ' ↓'}</span>}
        </a>
      ),
    };
  };
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
        columns={[
          column('queue', 'Queue'),
          column('latency', 'Latency'),
          column('throughput', 'Processed/s'),
          column('errors', 'Failed/s'),
          ...states.map((state) => column(state, <StateLabel state={state} />)),
          { head: 'Memory', kind: 'number memory' },
        ]}
      >
        {shown.map((queue) => (
          <QueueRow key={queue.queue} queue={queue} states={states} />
        ))}
      </Table>
      {shown.length === 0 && <Empty title={`No queue has “${filter}” in its name`} />}
      {live.queues.length < live.queueCount && (
        <p class="foot">
          The {count(live.queues.length)} queues with the most tasks of {count(live.queueCount)} are shown.
        </p>
      )}
      <Pager pages={Math.ceil(found.length / PAGE_SIZE)} />
    </Card>
  );
}

function QueueRow(props: { readonly queue: QueueJson; readonly states: readonly TaskState[] }): JSX.Element {
  const { queue, states } = props;
  const { processed, failed } = ratesOf(queue.queue);
  const held = (queue.held?.concurrency ?? 0) + (queue.held?.rate ?? 0);
  return (
    <tr>
      <th scope="row" data-label="Queue">
        <a class="row-link" data-row href={queueHref(queue.queue)}>
          <Name text={queue.queue} />
        </a>
        {queue.paused && <Tag tone="warn">paused</Tag>}
        {!queue.hasServer && <Tag tone={queue.pending > 0 ? 'bad' : 'plain'}>no server</Tag>}
        {held > 0 && <Tag title="Pending tasks that a limit holds back">{compact(held)} held</Tag>}
        <StateBar queue={queue} />
      </th>
      <td class="number" data-label="Latency">
        {queue.latencyMs === 0 ? <span class="zero">0</span> : durationText(queue.latencyMs)}
      </td>
      <td class="number spark" data-label="Processed/s">
        <Sparkline values={processed} label="processed in the last minute" width={64} />
        <span>{rate(queue.processedPerS)}</span>
      </td>
      <td class="number spark" data-label="Failed/s">
        <Sparkline values={failed} tone="bad" label="failed in the last minute" width={64} />
        <span>{rate(queue.failedPerS)}</span>
      </td>
      {states.map((state) => (
        <td key={state} class="number" data-label={STATE_LABELS[state]}>
          <a class={queue[state] === 0 ? 'quiet zero' : 'quiet'} href={queueHref(queue.queue, { state })}>
            {compact(queue[state])}
          </a>
        </td>
      ))}
      <td class="number memory" data-label="Memory">
        {bytes(queue.memoryUsageBytes)}
      </td>
    </tr>
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
