import type { JSX } from 'preact';
import { TASK_STATES, type TaskState } from '../../tasks/task-state.ts';
import type { LiveJson, QueueJson, SessionJson } from '../dashboard-json.ts';
import { bytes, compact, count, duration, percent, plural, rate } from './format.ts';
import { useLive } from './live.ts';
import { Card, Empty, Figure, Name, Page, Pager, Skeleton, StateLabel, STATE_LABELS, Tag } from './parts.tsx';
import { ratesOf, sumOf, useRates } from './recent.ts';
import { pageOf, queueHref, replace, to, withChange, type Route } from './route.ts';
import { Sparkline } from './sparkline.tsx';

const PAGE_SIZE = 50;

/** All queues, and what is wrong with them. */
export function OverviewPage({
  route,
  session,
}: {
  readonly route: Route;
  readonly session: SessionJson;
}): JSX.Element {
  const { live } = useLive();
  return (
    <Page
      title="Overview"
      note={session.source === undefined ? undefined : <Name text={session.source} mono />}
    >
      {live === undefined ? (
        <Skeleton lines={10} />
      ) : (
        <Overview live={live} route={route} session={session} />
      )}
    </Page>
  );
}

function Overview(props: {
  readonly live: LiveJson;
  readonly route: Route;
  readonly session: SessionJson;
}): JSX.Element {
  const { live, route, session } = props;
  if (!session.has.tasks) {
    return (
      <Empty title="This dashboard shows no tasks">
        It was started without a broker. See the pages of timers and queues of this process.
      </Empty>
    );
  }
  return (
    <>
      <Figures live={live} />
      <Unserved queues={live.queues} />
      <QueueList live={live} route={route} />
    </>
  );
}

const total = (queues: readonly QueueJson[], state: TaskState): number =>
  queues.reduce((sum, { counts }) => sum + counts[state], 0);

function Figures({ live }: { readonly live: LiveJson }): JSX.Element {
  const { queues } = live;
  const all = ratesOf();
  const done = sumOf(queues, 'processedPerS');
  const failed = sumOf(queues, 'failedPerS');
  const latencyMs = Math.max(0, ...queues.map((queue) => queue.latencyMs));
  const today = queues.reduce((sum, { processed }) => sum + processed, 0);
  const failedToday = queues.reduce((sum, queue) => sum + queue.failed, 0);
  const search = (state: TaskState): string => to(['search'], { state });
  return (
    <section class="figures" aria-label="All queues">
      <Figure label="Processed" value={rate(done)} unit="/s" href={to(['charts'])}>
        <Sparkline values={all.processed} label={`${rate(done)} tasks processed a second`} />
      </Figure>
      <Figure
        label="Failed"
        value={rate(failed)}
        unit="/s"
        href={to(['charts'])}
        tone={failed > 0 ? 'bad' : 'plain'}
      >
        <Sparkline values={all.failed} tone="bad" label={`${rate(failed)} runs failed a second`} />
      </Figure>
      <Figure label="Pending" value={compact(total(queues, 'pending'))} href={search('pending')}>
        <span class="figure-note">longest {duration(latencyMs)}</span>
      </Figure>
      <Figure label="Active" value={compact(total(queues, 'active'))} href={to(['servers'])}>
        <span class="figure-note">on {plural(live.serverCount, 'server')}</span>
      </Figure>
      <Figure label="Retry" value={compact(total(queues, 'retry'))} href={search('retry')}>
        <span class="figure-note">{compact(total(queues, 'scheduled'))} scheduled</span>
      </Figure>
      <Figure label="Archived" value={compact(total(queues, 'archived'))} href={search('archived')}>
        <span class="figure-note">given up</span>
      </Figure>
      <Figure label="Today" value={compact(today)}>
        <span class="figure-note">{percent(failedToday, today)} failed</span>
      </Figure>
    </section>
  );
}

function Unserved({ queues }: { readonly queues: readonly QueueJson[] }): JSX.Element | null {
  const unserved = queues.filter(({ hasServer, counts }) => !hasServer && counts.pending > 0);
  if (unserved.length === 0) return null;
  const [first] = unserved;
  return (
    <p class="banner warn">
      <strong>
        No server works on {unserved.length === 1 ? 'this queue' : `these ${unserved.length} queues`}:
      </strong>{' '}
      {unserved.slice(0, 5).map(({ queue, counts }) => (
        <a key={queue} href={queueHref(queue)}>
          <Name text={queue} /> ({compact(counts.pending)} pending)
        </a>
      ))}
      {first !== undefined && unserved.length > 5 && <span>and {unserved.length - 5} more</span>}
    </p>
  );
}

type Column = 'queue' | 'latency' | 'throughput' | 'errors' | TaskState;

const sortValue = (queue: QueueJson, column: Column): number | string => {
  if (column === 'queue') return queue.queue;
  if (column === 'latency') return queue.latencyMs;
  if (column === 'throughput') return queue.processedPerS ?? 0;
  if (column === 'errors') return queue.failedPerS ?? 0;
  return queue.counts[column];
};

function sorted(queues: readonly QueueJson[], column: Column): readonly QueueJson[] {
  if (column === 'queue') return queues;
  return queues.toSorted((a, b) => Number(sortValue(b, column)) - Number(sortValue(a, column)));
}

function QueueList({ live, route }: { readonly live: LiveJson; readonly route: Route }): JSX.Element {
  const filter = route.query.get('filter') ?? '';
  const sort = (route.query.get('sort') ?? 'queue') as Column;
  const found = live.queues.filter(({ queue }) => queue.toLowerCase().includes(filter.toLowerCase()));
  const page = pageOf(route);
  const shown = sorted(found, sort).slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  useRates(shown.slice(0, 24).map(({ queue }) => queue));
  // Few programs have groups: the column is there for those.
  const states = TASK_STATES.filter((state) => state !== 'aggregating' || total(live.queues, state) > 0);
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
      <div class="scroll">
        <table class="rows queues">
          <thead>
            <tr>
              <Head name="queue" sort={sort} route={route} label="Queue" />
              <Head name="latency" sort={sort} route={route} label="Latency" />
              <Head name="throughput" sort={sort} route={route} label="Processed/s" />
              <Head name="errors" sort={sort} route={route} label="Failed/s" />
              {states.map((state) => (
                <Head
                  key={state}
                  name={state}
                  sort={sort}
                  route={route}
                  label={<StateLabel state={state} />}
                />
              ))}
              <th scope="col" class="number memory">
                Memory
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((queue) => (
              <QueueRow key={queue.queue} queue={queue} states={states} />
            ))}
          </tbody>
        </table>
      </div>
      {shown.length === 0 && <Empty title={`No queue has “${filter}” in its name`} />}
      {live.queues.length < live.queueCount && (
        <p class="foot">
          The {count(live.queues.length)} queues with the most tasks of {count(live.queueCount)} are shown.
        </p>
      )}
      <Pager
        page={page}
        pages={Math.ceil(found.length / PAGE_SIZE)}
        href={(next) => withChange(route, { page: next })}
      />
    </Card>
  );
}

function Head(props: {
  readonly name: Column;
  readonly sort: Column;
  readonly route: Route;
  readonly label: JSX.Element | string;
}): JSX.Element {
  const { name, sort, route, label } = props;
  const isSorted = name === sort;
  const order = name === 'queue' ? 'ascending' : 'descending';
  return (
    <th scope="col" class={name === 'queue' ? '' : 'number'} aria-sort={isSorted ? order : 'none'}>
      <a href={withChange(route, { sort: name === 'queue' ? undefined : name, page: undefined })}>
        {label}
        {isSorted && <span aria-hidden="true">{name === 'queue' ? ' ↑' : ' ↓'}</span>}
      </a>
    </th>
  );
}

function QueueRow(props: { readonly queue: QueueJson; readonly states: readonly TaskState[] }): JSX.Element {
  const { queue, states } = props;
  const { counts } = queue;
  const { processed, failed } = ratesOf(queue.queue);
  const held = (queue.held?.concurrency ?? 0) + (queue.held?.rate ?? 0);
  return (
    <tr>
      <th scope="row" data-label="Queue">
        <a class="row-link" data-row href={queueHref(queue.queue)}>
          <Name text={queue.queue} />
        </a>
        {queue.isPaused && <Tag tone="warn">paused</Tag>}
        {!queue.hasServer && <Tag tone={counts.pending > 0 ? 'bad' : 'plain'}>no server</Tag>}
        {held > 0 && <Tag title="Pending tasks that a limit holds back">{compact(held)} held</Tag>}
        <StateBar counts={counts} />
      </th>
      <td class="number" data-label="Latency">
        {queue.latencyMs === 0 ? <span class="zero">0</span> : duration(queue.latencyMs)}
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
          <a class={counts[state] === 0 ? 'quiet zero' : 'quiet'} href={queueHref(queue.queue, { state })}>
            {compact(counts[state])}
          </a>
        </td>
      ))}
      <td class="number memory" data-label="Memory">
        {bytes(queue.memoryBytes)}
      </td>
    </tr>
  );
}

/** How the tasks of a queue are spread over its states. The numbers beside it say the same. */
export function StateBar({ counts }: { readonly counts: QueueJson['counts'] }): JSX.Element {
  const all = TASK_STATES.reduce((sum, state) => sum + counts[state], 0);
  return (
    <span class="state-bar" aria-hidden="true">
      {all > 0 &&
        TASK_STATES.filter((state) => counts[state] > 0).map((state) => (
          <span key={state} class={`state-${state}`} style={{ flexGrow: counts[state] }} />
        ))}
    </span>
  );
}
