import type { JSX } from 'preact';
import type {
  DiskQueueJson,
  PurgatoryJson,
  RuntimeJson,
  TimerJson,
  WorkQueueJson,
} from '../dashboard-json.ts';
import { bytes, compact, count, duration, plural } from './format.ts';
import { Card, Empty, Figure, Loaded, Name, Page, Tabs, Tag } from './parts.tsx';
import { to, type Route } from './route.ts';
import { Sparkline } from './sparkline.tsx';
import { useData } from './use-data.ts';
import { WheelView } from './wheel-view.tsx';

/** What the process of the dashboard has besides tasks: timers, purgatories, work queues and disk queues. */

interface Kind<T> {
  readonly title: string;
  readonly note: string;
  readonly empty: string;
  readonly path: string;
  readonly of: (runtime: RuntimeJson) => readonly T[];
  readonly Content: (props: { readonly of: T }) => JSX.Element;
}

/** A page of all things of a kind, or of the one that is in the address. */
function RuntimePage<T extends { readonly name: string }>(props: {
  readonly kind: Kind<T>;
  readonly route: Route;
}): JSX.Element {
  const { kind, route } = props;
  const { Content } = kind;
  const runtime = useData<RuntimeJson>('runtime');
  const [, chosen = ''] = route.parts;
  return (
    <Page title={kind.title} note={kind.note}>
      <Loaded of={runtime} lines={10}>
        {(loaded) => {
          const all = kind.of(loaded);
          if (all.length === 0) {
            return (
              <Empty title={kind.empty}>
                Pass them to <code>dashboard()</code> in the program that has them.
              </Empty>
            );
          }
          const shown = chosen === '' ? all : all.filter(({ name }) => name === chosen);
          const tab = (id: string, label: string): { id: string; label: JSX.Element; href: string } => ({
            id,
            label: <Name text={label} />,
            href: to(id === '' ? [kind.path] : [kind.path, id]),
          });
          return (
            <>
              {all.length > 1 && (
                <Tabs
                  label={kind.title}
                  current={chosen}
                  items={[tab('', 'All'), ...all.map(({ name }) => tab(name, name))]}
                />
              )}
              {shown.map((one, index) => (
                <Content key={`${one.name} ${index}`} of={one} />
              ))}
              {shown.length === 0 && <Empty title="There is none of that name now" />}
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

interface PageProps {
  readonly route: Route;
}

const TIMERS: Kind<TimerJson> = {
  title: 'Timers',
  note: 'Hierarchical timing wheels of this process. A timer waits in the wheel that its delay fits, and moves inwards as time passes.',
  empty: 'No timers are shown',
  path: 'timers',
  of: ({ timers }) => timers,
  Content: TimerContent,
};

export function TimersPage({ route }: PageProps): JSX.Element {
  return <RuntimePage kind={TIMERS} route={route} />;
}

function TimerContent({ of: timer }: { readonly of: TimerJson }): JSX.Element {
  const { lateness, history } = timer;
  const most = Math.max(0, ...history.size);
  return (
    <Card title={<Name text={timer.name} />}>
      <div class="figures inside">
        <Figure label="Pending" value={compact(timer.size)}>
          <span class="figure-note">most {compact(most)} in five minutes</span>
        </Figure>
        <Figure label="Due now" value={compact(timer.dueNow)}>
          <span class="figure-note">not run yet</span>
        </Figure>
        <Figure
          label="Lateness"
          value={duration(lateness.medianMs)}
          tone={lateness.longestMs > 200 ? 'warn' : 'plain'}
        >
          <span class="figure-note">median; longest {duration(lateness.longestMs)}</span>
        </Figure>
        <Figure
          label="Buckets in use"
          value={count(timer.levels.reduce((sum, level) => sum + level.buckets.length, 0))}
        >
          <span class="figure-note">{plural(timer.levels.length, 'level')}</span>
        </Figure>
      </div>
      <WheelView wheels={timer} name={timer.name} />
      <figure class="history">
        <figcaption>Pending over the last five minutes</figcaption>
        <Sparkline
          values={history.size}
          label={`Pending timers of the last five minutes: ${count(timer.size)} now, at most ${count(most)}`}
          most={Math.max(60, history.size.length)}
          width={800}
          height={64}
        />
      </figure>
    </Card>
  );
}

const PURGATORIES: Kind<PurgatoryJson> = {
  title: 'Purgatories',
  note: 'Operations that wait for an event on a key, or for their timeout.',
  empty: 'No purgatories are shown',
  path: 'purgatories',
  of: ({ purgatories }) => purgatories,
  Content: PurgatoryContent,
};

export function PurgatoriesPage({ route }: PageProps): JSX.Element {
  return <RuntimePage kind={PURGATORIES} route={route} />;
}

function PurgatoryContent({ of: purgatory }: { readonly of: PurgatoryJson }): JSX.Element {
  return (
    <Card title={<Name text={purgatory.name} />}>
      <div class="figures inside">
        <Figure label="Operations" value={compact(purgatory.delayed)}>
          <span class="figure-note">with a pending timeout</span>
        </Figure>
        <Figure label="Watch entries" value={compact(purgatory.watched)}>
          <span class="figure-note">under all keys</span>
        </Figure>
        <Figure label="Keys" value={compact(purgatory.watchedKeys)} />
      </div>
      <Bars
        of="Key"
        number="Operations"
        rows={purgatory.keys.map(({ key, operations }) => [key, operations])}
        empty={purgatory.delayed === 0 ? 'No operation waits.' : ''}
        all={purgatory.watchedKeys}
      />
    </Card>
  );
}

const WORK_QUEUES: Kind<WorkQueueJson> = {
  title: 'Work queues',
  note: 'Queues of items in this process, each processed by one worker at a time.',
  empty: 'No work queues are shown',
  path: 'work-queues',
  of: ({ workQueues }) => workQueues,
  Content: WorkQueueContent,
};

export function WorkQueuesPage({ route }: PageProps): JSX.Element {
  return <RuntimePage kind={WORK_QUEUES} route={route} />;
}

function WorkQueueContent({ of: queue }: { readonly of: WorkQueueJson }): JSX.Element {
  return (
    <Card title={<Name text={queue.name} />}>
      <div class="figures inside">
        <Figure label="Depth" value={compact(queue.depth)}>
          <span class="figure-note">ready for a worker</span>
        </Figure>
        <Figure label="In progress" value={compact(queue.inProgress)} />
        <Figure label="Waiting" value={compact(queue.waiting)}>
          <span class="figure-note">until their delay is over</span>
        </Figure>
        <Figure
          label="Retrying"
          value={compact(queue.retries.length)}
          tone={queue.retries.length > 0 ? 'warn' : 'plain'}
        >
          <span class="figure-note">failed, not yet succeeded</span>
        </Figure>
      </div>
      <Bars
        of="Item"
        number="Retries"
        rows={queue.retries.map(({ item, retries }) => [item, retries])}
        empty={queue.depth + queue.waiting === 0 ? 'Nothing waits.' : 'No item is being retried.'}
      />
    </Card>
  );
}

/** Names with a number each, and a bar for the number. */
function Bars(props: {
  readonly of: string;
  readonly number: string;
  readonly rows: readonly (readonly [string, number])[];
  readonly empty: string;
  readonly all?: number;
}): JSX.Element | null {
  const { rows, all = rows.length } = props;
  if (rows.length === 0) return props.empty === '' ? null : <p class="faint pad">{props.empty}</p>;
  const most = Math.max(1, ...rows.map(([, value]) => value));
  return (
    <>
      <table class="rows bars">
        <thead>
          <tr>
            <th scope="col">{props.of}</th>
            <th scope="col" class="number">
              {props.number}
            </th>
            <th scope="col">
              <span class="unseen">Share</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, value], index) => (
            <tr key={index}>
              <th scope="row">
                <Name text={name} />
              </th>
              <td class="number">{count(value)}</td>
              <td>
                <span class="bar" aria-hidden="true" style={{ width: `${(100 * value) / most}%` }} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {all > rows.length && (
        <p class="foot">
          {count(rows.length)} of {count(all)} are shown.
        </p>
      )}
    </>
  );
}

const DISK_QUEUES: Kind<DiskQueueJson> = {
  title: 'Disk queues',
  note: 'Messages in segment files, read in order and removed once they are acknowledged.',
  empty: 'No disk queues are shown',
  path: 'disk-queues',
  of: ({ diskQueues }) => diskQueues,
  Content: DiskQueueContent,
};

export function DiskQueuesPage({ route }: PageProps): JSX.Element {
  return <RuntimePage kind={DISK_QUEUES} route={route} />;
}

function DiskQueueContent({ of: queue }: { readonly of: DiskQueueJson }): JSX.Element {
  const { segments, cursor } = queue;
  const largest = Math.max(1, ...segments.map((segment) => segment.bytes));
  const at = segments.findIndex(({ name }) => name === cursor?.segment);
  return (
    <Card title={<Name text={queue.name} />}>
      <div class="figures inside">
        <Figure label="Depth" value={compact(queue.depth)}>
          <span class="figure-note">messages not acknowledged</span>
        </Figure>
        <Figure label="In flight" value={compact(queue.inFlight)}>
          <span class="figure-note">delivered, not acknowledged</span>
        </Figure>
        <Figure label="Size" value={bytes(queue.bytes)}>
          <span class="figure-note">{plural(segments.length, 'segment')}</span>
        </Figure>
      </div>
      <ol class="segments">
        {segments.map((segment, index) => {
          const isAt = segment.name === cursor?.segment;
          const read = isAt ? cursor.offset / Math.max(1, segment.bytes) : index < at ? 1 : 0;
          return (
            <li key={segment.name}>
              <span class="segment-name">
                <Name text={segment.name} mono />
                {isAt && <Tag tone="accent">cursor at {bytes(cursor.offset)}</Tag>}
              </span>
              <span class="segment-bar" aria-hidden="true">
                <span style={{ width: `${(100 * segment.bytes) / largest}%` }}>
                  <span style={{ width: `${100 * Math.min(1, read)}%` }} />
                  {isAt && <i style={{ left: `${100 * Math.min(1, read)}%` }} />}
                </span>
              </span>
              <span class="faint">
                {bytes(segment.bytes)}
                {segment.messages !== undefined && `, ${plural(segment.messages, 'message')}`}
              </span>
            </li>
          );
        })}
      </ol>
      {segments.length === 0 && queue.bytes === 0 && (
        <p class="faint pad">There is no segment: the queue is empty.</p>
      )}
    </Card>
  );
}
