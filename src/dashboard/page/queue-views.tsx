import type { JSX } from 'preact';
import type { KeyListJson, QueueDetailJson } from '../dashboard-json.ts';
import { path, withQuery } from './api.ts';
import { count, duration, percent } from './format.ts';
import { Card, Empty, Fact, Loaded, Name, Pager, Tag } from './parts.tsx';
import { pageOf, queueHref, withChange, type Route } from './route.ts';
import { useData } from './use-data.ts';

/** What a queue has besides tasks by state. */

const PAGE_SIZE = 25;

export function Groups({ detail }: { readonly detail: QueueDetailJson }): JSX.Element {
  const { groups, queue } = detail;
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
      <div class="scroll">
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col" class="number">
                Tasks
              </th>
            </tr>
          </thead>
          <tbody>
            {groups.map(({ group, size }) => (
              <tr key={group}>
                <td>
                  <a class="row-link" data-row href={queueHref(queue.queue, { state: 'aggregating', group })}>
                    <Name text={group} />
                  </a>
                </td>
                <td class="number">{count(size)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {queue.groups > groups.length && (
        <p class="foot">
          The first {count(groups.length)} of {count(queue.groups)} groups.
        </p>
      )}
    </Card>
  );
}

export function Keys({ queue, route }: { readonly queue: string; readonly route: Route }): JSX.Element {
  const page = pageOf(route);
  const list = useData<KeyListJson>(withQuery(path('queues', queue, 'keys'), { page, size: PAGE_SIZE }));
  return (
    <Card>
      <Loaded of={list}>
        {({ keys }) =>
          keys.length === 0 && page === 1 ? (
            <Empty title="No keys">
              Tasks that are enqueued with a key share its limits and appear here.
            </Empty>
          ) : (
            <>
              <div class="scroll">
                <table class="rows">
                  <thead>
                    <tr>
                      <th scope="col">Key</th>
                      <th scope="col" class="number">
                        Pending
                      </th>
                      <th scope="col" class="number">
                        Active
                      </th>
                      <th scope="col">Held by</th>
                    </tr>
                  </thead>
                  <tbody>
                    {keys.map((key) => (
                      <tr key={key.key}>
                        <th scope="row">
                          {key.key === '' ? <span class="faint">no key</span> : <Name text={key.key} />}
                        </th>
                        <td class="number" data-label="Pending">
                          {count(key.pending)}
                        </td>
                        <td class="number" data-label="Active">
                          {count(key.active)}
                        </td>
                        <td data-label="Held by">
                          {key.heldBy === undefined ? (
                            <span class="faint">–</span>
                          ) : (
                            <Tag tone="warn">{key.heldBy}</Tag>
                          )}
                          {key.againInMs !== undefined && ` for ${duration(key.againInMs)}`}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              <Pager
                page={page}
                pages={keys.length === PAGE_SIZE ? page + 1 : page}
                href={(next) => withChange(route, { page: next })}
              />
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

export function Days({ detail }: { readonly detail: QueueDetailJson }): JSX.Element {
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
