import type { JSX } from 'preact';
import type { GroupInfo, KeyStats } from '../../tasks/broker/broker-types.ts';
import type { QueueDetailJson } from '../dashboard-json.ts';
import { path } from './api.ts';
import { clipped, count, durationText, percent, visible } from './format.ts';
import { Facts, numbers, PagedTable, Pager, Table, type Column } from './lists.tsx';
import { useLive } from './live.ts';
import { Card, Empty, Name, NameLink, Tag } from './parts.tsx';
import { pageOf, queueHref, useRoute } from './route.ts';

/** What a queue has besides tasks by state. */

const PAGE_SIZE = 25;

export function GroupList({ detail }: { readonly detail: QueueDetailJson }): JSX.Element {
  const { groups, queue } = detail;
  const first = (pageOf(useRoute()) - 1) * PAGE_SIZE;
  const hrefOf = (group: string): string => queueHref(queue.queue, { state: 'aggregating', group });
  const columns: readonly Column<GroupInfo>[] = [
    { head: 'Group', cell: ({ group }) => <NameLink kind="row-link" href={hrefOf(group)} text={group} /> },
    numbers('Tasks', ({ size }) => count(size)),
  ];
  const shown = groups.slice(first, first + PAGE_SIZE);
  return (
    <Card>
      {groups.length === 0 ? (
        <Empty title="No groups">
          Tasks that are enqueued with a group wait here until a server aggregates them.
        </Empty>
      ) : (
        <Table columns={columns} rows={shown} keyOf={({ group }) => group} />
      )}
      {queue.groups > groups.length && (
        <p class="foot">
          The first {count(groups.length)} of {count(queue.groups)} groups.
        </p>
      )}
      <Pager pages={Math.ceil(groups.length / PAGE_SIZE)} />
    </Card>
  );
}

const KEY_COLUMNS: readonly Column<KeyStats>[] = [
  {
    ...{ head: 'Key', isHeading: true },
    cell: ({ key }) => (key === '' ? <span class="faint">no key</span> : <Name text={key} />),
  },
  numbers('Pending', ({ pending }) => count(pending)),
  numbers('Active', ({ active }) => count(active)),
  {
    head: 'Held by',
    cell: ({ heldBy, againInMs }) => (
      <>
        {heldBy === undefined ? <span class="faint">–</span> : <Tag tone="warn">{heldBy}</Tag>}
        {againInMs !== undefined && ` for ${durationText(againInMs)}`}
      </>
    ),
  },
];

export function KeyList({ queue }: { readonly queue: string }): JSX.Element {
  return (
    <Card>
      <PagedTable
        path={path('queues', queue, 'keys')}
        size={PAGE_SIZE}
        columns={KEY_COLUMNS}
        keyOf={({ key }) => key}
        empty={
          <Empty title="No keys">Tasks that are enqueued with a key share its limits and appear here.</Empty>
        }
      />
    </Card>
  );
}

export function DayList({ detail }: { readonly detail: QueueDetailJson }): JSX.Element {
  const days = detail.days.filter(({ processed }) => processed > 0);
  const top = Math.max(1, ...days.map(({ processed }) => processed));
  const bar = ({ processed, failed }: (typeof days)[number]): JSX.Element => (
    <span class="day">
      <span class="bar" aria-hidden="true" style={{ width: `${(100 * processed) / top}%` }}>
        <span class="bar bad" style={{ width: `${(100 * failed) / Math.max(1, processed)}%` }} />
      </span>
      <span>
        {count(processed)} processed, {count(failed)} failed ({percent(failed, processed)})
      </span>
    </span>
  );
  return (
    <Card>
      {days.length === 0 ? (
        <Empty title="Nothing has run yet">The runs of each day, by UTC, are counted for 90 days.</Empty>
      ) : (
        <Facts list={days.map((day) => [day.date, bar(day)])} />
      )}
    </Card>
  );
}

/** An option for each queue that is known, and for those that are chosen; these are so again when the form is reset. */
export function QueueChoices({ chosen }: { readonly chosen: readonly string[] }): JSX.Element {
  const { live } = useLive();
  const names = new Set([...(live?.queues ?? []).map(({ queue }) => queue), ...chosen]);
  const choice = (name: string): object => {
    const isChosen = chosen.includes(name);
    return { selected: isChosen, defaultSelected: isChosen };
  };
  return (
    <>
      {[...names].map((name) => (
        <option key={name} value={name} {...choice(name)}>
          {visible(clipped(name, 80))}
        </option>
      ))}
    </>
  );
}
