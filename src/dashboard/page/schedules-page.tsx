import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ScheduleEventJson, ScheduleJson } from '../dashboard-json.ts';
import { path } from './api.ts';
import { ContentView } from './content-view.tsx';
import { clockTime, exactTime } from './format.ts';
import { Facts, PagedTable, Table, type Column } from './lists.tsx';
import { Card, Empty, Loaded, Name, NameLink, PageLayout, Time } from './parts.tsx';
import { to } from './route.ts';
import { useData } from './use-data.ts';

const PAGE_SIZE = 20;

/** What schedulers enqueue, and when; with an id in the address, the ticks of one. */
export function SchedulesPage({ id: chosen }: { readonly id: string | undefined }): JSX.Element {
  const schedules = useData<readonly ScheduleJson[]>('schedules');
  const words = useCronWords();
  return (
    <PageLayout
      title="Schedules"
      note={chosen === undefined ? undefined : <a href={to(['schedules'])}>All schedules</a>}
    >
      <Loaded of={schedules}>
        {(list) => {
          const schedule = list.find(({ id }) => id === chosen);
          if (chosen !== undefined) return <OneSchedule id={chosen} schedule={schedule} words={words} />;
          if (list.length === 0) {
            return (
              <Empty title="No schedules">
                A scheduler that runs registers what it enqueues, and appears here.
              </Empty>
            );
          }
          return <List list={list} words={words} />;
        }}
      </Loaded>
    </PageLayout>
  );
}

type Words = (spec: string) => string | undefined;
type Cronstrue = typeof import('cronstrue').default;

/** Cron in words, as soon as the package for that is loaded. */
function useCronWords(): Words {
  const [cronstrue, setCronstrue] = useState<Cronstrue>();
  useEffect(() => {
    import('cronstrue').then(
      (loaded) => setCronstrue(() => loaded.default),
      () => undefined,
    );
  }, []);
  return (spec) =>
    spec.startsWith('@every ') ? `Every ${spec.slice(7)}` : cronstrue && wordsOfCron(spec, cronstrue);
}

/** `At 09:00, Monday through Friday`; undefined for what is not a cron expression. */
function wordsOfCron(spec: string, cronstrue: Cronstrue): string | undefined {
  const [, zone, expression = spec] = /^(?:CRON_)?TZ=(\S+)\s+(.*)$/.exec(spec) ?? [];
  try {
    const short = cronstrue.toString(expression, { use24HourTimeFormat: true });
    // cronstrue names the times of such a schedule, and no day.
    const words = short.replace(/^At [\d:, and]+$/, '$&, every day');
    return zone === undefined ? words : `${words}, in ${zone}`;
  } catch {
    return undefined;
  }
}

function List(props: { readonly list: readonly ScheduleJson[]; readonly words: Words }): JSX.Element {
  const when = ({ spec }: ScheduleJson): JSX.Element => (
    <div>
      {props.words(spec)} <Name text={spec} mono />
    </div>
  );
  const columns: readonly Column<ScheduleJson>[] = [
    {
      head: 'Task',
      cell: ({ id, taskType }) => <NameLink kind="row-link" href={to(['schedules', id])} text={taskType} />,
    },
    { head: 'When', cell: when },
    { head: 'Next', cell: ({ nextEnqueueAtMs }) => <Time atMs={nextEnqueueAtMs} /> },
    { head: 'Last', cell: ({ prevEnqueueAtMs }) => <Time atMs={prevEnqueueAtMs} /> },
    { head: 'Options', kind: 'faint', cell: ({ options }) => <Name text={options.join(', ') || '–'} /> },
  ];
  return (
    <Card>
      <Table kind="schedules" columns={columns} rows={props.list} keyOf={({ id }) => id} />
    </Card>
  );
}

function OneSchedule(props: {
  readonly id: string;
  readonly schedule: ScheduleJson | undefined;
  readonly words: Words;
}): JSX.Element {
  const { id, schedule, words } = props;
  return (
    <div class="columns">
      <div>
        <Ticks id={id} />
      </div>
      <div>
        {schedule === undefined ? (
          <Empty title="This schedule does not exist any more">
            Its scheduler has ended. Its history remains.
          </Empty>
        ) : (
          <>
            <Card title={<Name text={schedule.taskType} />}>
              <Facts
                list={[
                  ['When', [words(schedule.spec), ' ', <Name text={schedule.spec} mono />]],
                  ['Next', <Time atMs={schedule.nextEnqueueAtMs} />],
                  ['Last', <Time atMs={schedule.prevEnqueueAtMs} />],
                  ['Options', <Name text={schedule.options.join(', ') || 'none'} />],
                  ['Id', <Name text={id} mono />],
                ]}
              />
            </Card>
            <Card title="Payload">
              <ContentView content={schedule.taskPayload} name="the payload" />
            </Card>
          </>
        )}
      </div>
    </div>
  );
}

const TICK_COLUMNS: readonly Column<ScheduleEventJson>[] = [
  { head: 'Enqueued', cell: ({ enqueuedAtMs }) => <Time atMs={enqueuedAtMs} /> },
  {
    head: 'At',
    kind: 'faint',
    cell: ({ enqueuedAtMs }) => <span title={exactTime(enqueuedAtMs)}>{clockTime(enqueuedAtMs)}</span>,
  },
  {
    head: 'Task',
    cell: ({ taskId }) => <NameLink kind="quiet" href={to(['search'], { id: taskId })} text={taskId} mono />,
  },
];

function Ticks({ id }: { readonly id: string }): JSX.Element {
  return (
    <Card title="History of ticks">
      <PagedTable
        path={path('schedules', id, 'events')}
        size={PAGE_SIZE}
        columns={TICK_COLUMNS}
        keyOf={({ taskId }) => taskId}
        empty={
          <Empty title="No ticks yet">Each time that the schedule enqueues its task is listed here.</Empty>
        }
      />
    </Card>
  );
}
