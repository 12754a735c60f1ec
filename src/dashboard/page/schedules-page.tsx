import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ScheduleEventJson, ScheduleJson } from '../dashboard-json.ts';
import { path, withQuery } from './api.ts';
import { ContentView } from './content-view.tsx';
import { clockTime, exactTime } from './format.ts';
import { Card, Empty, Fact, Loaded, Name, PageLayout, Pager, Table, Time } from './parts.tsx';
import { pageOf, to, useRoute } from './route.ts';
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

const MACROS: Readonly<Record<string, string>> = {
  '@yearly': 'Every year',
  '@annually': 'Every year',
  '@monthly': 'Every month',
  '@weekly': 'Every week',
  '@daily': 'Every day at midnight',
  '@midnight': 'Every day at midnight',
  '@hourly': 'Every hour',
};

const wordsOfMacro: Words = (spec) =>
  spec.startsWith('@every ') ? `Every ${spec.slice(7)}` : MACROS[spec.trim()];

/** Cron in words, as soon as that is loaded. */
function useCronWords(): Words {
  const [cronWords, setWords] = useState<Words>();
  useEffect(() => {
    import('./cron-words.ts').then(
      (loaded) => {
        setWords(() => loaded.cronWords);
      },
      () => undefined,
    );
  }, []);
  return (spec) => wordsOfMacro(spec) ?? cronWords?.(spec);
}

function List(props: { readonly list: readonly ScheduleJson[]; readonly words: Words }): JSX.Element {
  return (
    <Card>
      <Table kind="schedules" columns={['Task', 'When', 'Next', 'Last', 'Options']}>
        {props.list.map(({ id, taskType, spec, nextEnqueueAtMs, prevEnqueueAtMs, options }) => (
          <tr key={id}>
            <td>
              <a class="row-link" data-row href={to(['schedules', id])}>
                <Name text={taskType} />
              </a>
            </td>
            <td data-label="When">
              <div>
                {props.words(spec)} <Name text={spec} mono />
              </div>
            </td>
            <td data-label="Next">
              <Time atMs={nextEnqueueAtMs} />
            </td>
            <td data-label="Last">
              <Time atMs={prevEnqueueAtMs} />
            </td>
            <td class="faint" data-label="Options">
              <Name text={options.join(', ') || '–'} />
            </td>
          </tr>
        ))}
      </Table>
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
              <dl class="facts">
                <Fact term="When">
                  {words(schedule.spec)} <Name text={schedule.spec} mono />
                </Fact>
                <Fact term="Next">
                  <Time atMs={schedule.nextEnqueueAtMs} />
                </Fact>
                <Fact term="Last">
                  <Time atMs={schedule.prevEnqueueAtMs} />
                </Fact>
                <Fact term="Options">
                  <Name text={schedule.options.join(', ') || 'none'} />
                </Fact>
                <Fact term="Id">
                  <Name text={id} mono />
                </Fact>
              </dl>
            </Card>
            <Card title="Payload" kind="flush">
              <ContentView content={schedule.taskPayload} name="the payload" />
            </Card>
          </>
        )}
      </div>
    </div>
  );
}

function Ticks({ id }: { readonly id: string }): JSX.Element {
  const page = pageOf(useRoute());
  const events = useData<readonly ScheduleEventJson[]>(
    withQuery(path('schedules', id, 'events'), { page, size: PAGE_SIZE }),
  );
  return (
    <Card title="History of ticks">
      <Loaded of={events}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No ticks yet">Each time that the schedule enqueues its task is listed here.</Empty>
          ) : (
            <>
              <Table columns={['Enqueued', 'At', 'Task']}>
                {list.map(({ taskId, enqueuedAtMs: atMs }) => (
                  <tr key={taskId}>
                    <td>
                      <Time atMs={atMs} />
                    </td>
                    <td class="faint" title={exactTime(atMs)}>
                      {clockTime(atMs)}
                    </td>
                    <td>
                      <a class="quiet" data-row href={to(['search'], { id: taskId })}>
                        <Name text={taskId} mono />
                      </a>
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager pages={list.length === PAGE_SIZE ? page + 1 : page} />
            </>
          )
        }
      </Loaded>
    </Card>
  );
}
