import type { JSX } from 'preact';
import type { KeyStats } from '../../tasks/broker/broker-types.ts';
import type { QueueDetailJson } from '../dashboard-json.ts';
import { path, withQuery } from './api.ts';
import { clipped, count, durationText, percent, visible } from './format.ts';
import { useLive } from './live.ts';
import { Card, Empty, Fact, Loaded, Name, numbers, Pager, Table, Tag } from './parts.tsx';
import { pageOf, queueHref, useRoute } from './route.ts';
import { useData } from './use-data.ts';

/** What a queue has besides tasks by state. */

const PAGE_SIZE = 25;

export function GroupList({ detail }: { readonly detail: QueueDetailJson }): JSX.Element {
  const { groups, queue } = detail;
  const first = (pageOf(useRoute()) - 1) * PAGE_SIZE;
  if (groups.length === 0) {
    return (
      <Card>
        <Empty title="No groups">
          Tasks that are enqueued with a group wait here until a server aggregates them.
        </Empty>
      </Card>
    );
  }
  return (
    <Card>
      <Table columns={['Group', numbers('Tasks')]}>
        {groups.slice(first, first + PAGE_SIZE).map(({ group, size }) => (
          <tr key={group}>
            <td>
              <a class="row-link" data-row href={queueHref(queue.queue, { state: 'aggregating', group })}>
                <Name text={group} />
              </a>
            </td>
            <td class="number">{count(size)}</td>
          </tr>
        ))}
      </Table>
      {queue.groups > groups.length && (
        <p class="foot">
          The first {count(groups.length)} of {count(queue.groups)} groups.
        </p>
      )}
      <Pager pages={Math.ceil(groups.length / PAGE_SIZE)} />
    </Card>
  );
}

export function KeyList({ queue }: { readonly queue: string }): JSX.Element {
  const page = pageOf(useRoute());
  const list = useData<readonly KeyStats[]>(
    withQuery(path('queues', queue, 'keys'), { page, size: PAGE_SIZE }),
  );
  return (
    <Card>
      <Loaded of={list}>
        {(keys) =>
          keys.length === 0 && page === 1 ? (
            <Empty title="No keys">
              Tasks that are enqueued with a key share its limits and appear here.
            </Empty>
          ) : (
            <>
              <Table columns={['Key', numbers('Pending'), numbers('Active'), 'Held by']}>
                {keys.map(({ key, pending, active, heldBy, againInMs }) => (
                  <tr key={key}>
                    <th scope="row">
                      {key === '' ? <span class="faint">no key</span> : <Name text={key} />}
                    </th>
                    <td class="number" data-label="Pending">
                      {count(pending)}
                    </td>
                    <td class="number" data-label="Active">
                      {count(active)}
                    </td>
                    <td data-label="Held by">
                      {heldBy === undefined ? <span class="faint">–</span> : <Tag tone="warn">{heldBy}</Tag>}
                      {againInMs !== undefined && ` for ${durationText(againInMs)}`}
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager pages={keys.length === PAGE_SIZE ? page + 1 : page} />
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

export function DayList({ detail }: { readonly detail: QueueDetailJson }): JSX.Element {
  const days = detail.days.filter(({ processed }) => processed > 0);
  const top = Math.max(1, ...days.map(({ processed }) => processed));
  if (days.length === 0) {
    return (
      <Card>
        <Empty title="Nothing has run yet">The runs of each day, by UTC, are counted for 90 days.</Empty>
      </Card>
    );
  }
  return (
    <Card>
      <dl class="facts wide">
        {days.map(({ date, processed, failed }) => (
          <Fact key={date} term={date}>
            <span class="day">
              <span class="bar" aria-hidden="true" style={{ width: `${(100 * processed) / top}%` }}>
                <span class="bar bad" style={{ width: `${(100 * failed) / Math.max(1, processed)}%` }} />
              </span>
              <span>
                {count(processed)} processed, {count(failed)} failed ({percent(failed, processed)})
              </span>
            </span>
          </Fact>
        ))}
      </dl>
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
