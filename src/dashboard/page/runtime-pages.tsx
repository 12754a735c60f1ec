import type { JSX } from 'preact';
import type {
  DiskQueueJson,
  PurgatoryJson,
  RuntimeJson,
  TimerJson,
  WorkQueueJson,
} from '../dashboard-json.ts';
import { bytes, compact, count, durationText, plural } from './format.ts';
import { Table } from './lists.tsx';
import { Card, Empty, Figures, Loaded, Name, PageLayout, Tabs, Tag } from './parts.tsx';
import { to } from './route.ts';
import { Sparkline } from './sparkline.tsx';
import { useData } from './use-data.ts';
import { WheelView } from './wheel-view.tsx';

/** What the process of the dashboard has besides tasks: timers, purgatories, work queues and disk queues. */

interface Kind {
  readonly title: string;
  readonly note: string;
  readonly cards: (runtime: RuntimeJson) => readonly (readonly [name: string, content: JSX.Element])[];
}

/** By the paths of their pages. */
const KINDS = {
  timers: {
    title: 'Timers',
    note: 'Hierarchical timing wheels of this process. A timer waits in the wheel that its delay fits, and moves inwards as time passes.',
    cards: ({ timers }) => timers.map((one) => [one.name, <TimerContent timer={one} />]),
  },
  purgatories: {
    title: 'Purgatories',
    note: 'Operations that wait for an event on a key, or for their timeout.',
    cards: ({ purgatories }) => purgatories.map((one) => [one.name, <PurgatoryContent purgatory={one} />]),
  },
  'work-queues': {
    title: 'Work queues',
    note: 'Queues of items in this process, each processed by one worker at a time.',
    cards: ({ workQueues }) => workQueues.map((one) => [one.name, <WorkQueueContent queue={one} />]),
  },
  'disk-queues': {
    title: 'Disk queues',
    note: 'Messages in segment files, read in order and removed once they are acknowledged.',
    cards: ({ diskQueues }) => diskQueues.map((one) => [one.name, <DiskQueueContent queue={one} />]),
  },
} as const satisfies Readonly<Record<string, Kind>>;

/** A page of all things of a kind, or of the one that is in the address. */
export function RuntimePage(props: {
  readonly path: keyof typeof KINDS;
  readonly chosen: string | undefined;
}): JSX.Element {
  const { path, chosen } = props;
  const kind: Kind = KINDS[path];
  const runtime = useData<RuntimeJson>('runtime');
  return (
    <PageLayout title={kind.title} note={kind.note}>
      <Loaded of={runtime} lines={10}>
        {(loaded) => {
          const all = kind.cards(loaded);
          if (all.length === 0) {
            return (
              <Empty title={`No ${kind.title.toLowerCase()} are shown`}>
                Pass them to <code>dashboard()</code> in the program that has them.
              </Empty>
            );
          }
          const shown = all.filter(([name]) => chosen === undefined || name === chosen);
          const tabs = all.map(([name]) => ({
            ...{ id: name, label: <Name text={name} />, href: to([path, name]) },
          }));
          return (
            <>
              {all.length > 1 && (
                <Tabs
                  label={kind.title}
                  current={chosen ?? ''}
                  items={[{ id: '', label: 'All', href: to([path]) }, ...tabs]}
                />
              )}
              {shown.map(([name, content], index) => (
                <Card key={`${name} ${index}`} title={<Name text={name} />}>
                  {content}
                </Card>
              ))}
              {shown.length === 0 && <Empty title="There is none of that name now" />}
            </>
          );
        }}
      </Loaded>
    </PageLayout>
  );
}

function TimerContent({ timer }: { readonly timer: TimerJson }): JSX.Element {
  const { history } = timer;
  const { medianMs, longestMs } = timer.lateness;
  const most = Math.max(0, ...history);
  const tone = longestMs > 200 ? 'warn' : 'plain';
  const buckets = timer.levels.reduce((sum, level) => sum + level.buckets.length, 0);
  return (
    <>
      <Figures
        list={[
          ['Pending', compact(timer.size), `most ${compact(most)} in five minutes`],
          ['Due now', compact(timer.dueNow), 'not run yet'],
          ['Lateness', durationText(medianMs), `median; longest ${durationText(longestMs)}`, { tone }],
          ['Buckets in use', count(buckets), plural(timer.levels.length, 'level')],
        ]}
      />
      <WheelView wheels={timer} name={timer.name} />
      <figure class="history">
        <figcaption>Pending over the last five minutes</figcaption>
        <Sparkline
          values={history}
          label={`Pending timers of the last five minutes: ${count(timer.size)} now, at most ${count(most)}`}
          most={Math.max(60, history.length)}
          width={800}
          height={64}
        />
      </figure>
    </>
  );
}

function PurgatoryContent({ purgatory }: { readonly purgatory: PurgatoryJson }): JSX.Element {
  return (
    <>
      <Figures
        list={[
          ['Operations', compact(purgatory.numDelayed), 'with a pending timeout'],
          ['Watch entries', compact(purgatory.watched), 'under all keys'],
          ['Keys', compact(purgatory.watchedKeys)],
        ]}
      />
      <Bars
        of="Key"
        number="Operations"
        rows={purgatory.keys.map(({ key, operations }) => [key, operations])}
        empty={purgatory.numDelayed === 0 ? 'No operation waits.' : ''}
        all={purgatory.watchedKeys}
      />
    </>
  );
}

function WorkQueueContent({ queue }: { readonly queue: WorkQueueJson }): JSX.Element {
  const { depth, inProgress, waiting, retries } = queue;
  const tone = retries.length > 0 ? 'warn' : 'plain';
  return (
    <>
      <Figures
        list={[
          ['Depth', compact(depth), 'ready for a worker'],
          ['In progress', compact(inProgress)],
          ['Waiting', compact(waiting), 'until their delay is over'],
          ['Retrying', compact(retries.length), 'failed, not yet succeeded', { tone }],
        ]}
      />
      <Bars
        of="Item"
        number="Retries"
        rows={retries.map((one) => [one.key, one.retries])}
        empty={depth + waiting === 0 ? 'Nothing waits.' : 'No item is being retried.'}
      />
    </>
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
      <Table
        kind="bars"
        columns={[
          { head: props.of, isHeading: true, cell: ([name]) => <Name text={name} /> },
          { head: props.number, kind: 'number', cell: ([, value]) => count(value) },
          {
            head: <span class="unseen">Share</span>,
            cell: ([, value]) => (
              <span class="bar" aria-hidden="true" style={{ width: `${(100 * value) / most}%` }} />
            ),
          },
        ]}
        rows={rows}
        keyOf={(_, index) => index}
      />
      {all > rows.length && (
        <p class="foot">
          {count(rows.length)} of {count(all)} are shown.
        </p>
      )}
    </>
  );
}

function DiskQueueContent({ queue }: { readonly queue: DiskQueueJson }): JSX.Element {
  const { segments, cursor } = queue;
  const largest = Math.max(1, ...segments.map((segment) => segment.bytes));
  const at = segments.findIndex(({ file }) => file === cursor?.file);
  return (
    <>
      <Figures
        list={[
          ['Depth', compact(queue.depth), 'messages not acknowledged'],
          ['In flight', compact(queue.inFlight), 'delivered, not acknowledged'],
          ['Size', bytes(queue.bytes), plural(segments.length, 'segment')],
        ]}
      />
      <ol class="segments">
        {segments.map((segment, index) => {
          const isAt = segment.file === cursor?.file;
          const read = isAt ? cursor.offset / Math.max(1, segment.bytes) : index < at ? 1 : 0;
          return (
            <li key={segment.file}>
              <span class="segment-name">
                <Name text={segment.file} mono />
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
    </>
  );
}
