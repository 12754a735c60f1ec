import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ScheduleEventJson, ScheduleJson } from '../dashboard-json.ts';
import { path, withQuery } from './api.ts';
import { ContentView } from './content-view.tsx';
import { clockTime, exactTime } from './format.ts';
import { Card, Empty, Fact, Loaded, Name, Page, Pager, Time } from './parts.tsx';
import { pageOf, to, withChange, type Route } from './route.ts';
import { useData } from './use-data.ts';

const PAGE_SIZE = 20;

/** What schedulers enqueue, and when; with an id in the address, the ticks of one. */
export function SchedulesPage({ route }: { readonly route: Route }): JSX.Element {
  const schedules = useData<readonly ScheduleJson[]>('schedules');
  const words = useCronWords();
  const [, chosen] = route.parts;
  return (
    <Page
      title="Schedules"
      note={chosen === undefined ? undefined : <a href={to(['schedules'])}>All schedules</a>}
    >
      <Loaded of={schedules}>
        {(list) => {
          const schedule = list.find(({ id }) => id === chosen);
          if (chosen !== undefined)
            return <OneSchedule id={chosen} schedule={schedule} words={words} route={route} />;
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
    </Page>
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

function List({
  list,
  words,
}: {
  readonly list: readonly ScheduleJson[];
  readonly words: Words;
}): JSX.Element {
  return (
    <Card>
      <div class="scroll">
        <table class="rows schedules">
          <thead>
            <tr>
              <th scope="col">Task</th>
              <th scope="col">When</th>
              <th scope="col">Next</th>
              <th scope="col">Last</th>
              <th scope="col">Options</th>
            </tr>
          </thead>
          <tbody>
            {list.map((schedule) => (
              <tr key={schedule.id}>
                <td>
                  <a class="row-link" data-row href={to(['schedules', schedule.id])}>
                    <Name text={schedule.taskType} />
                  </a>
                </td>
                <td data-label="When">
                  <span class="words">{words(schedule.spec) ?? ''}</span> <Name text={schedule.spec} mono />
                </td>
                <td data-label="Next">
                  <Time atMs={schedule.nextAtMs} />
                </td>
                <td data-label="Last">
                  <Time atMs={schedule.previousAtMs} />
                </td>
                <td class="faint" data-label="Options">
                  <Name text={schedule.options.join(', ') || '–'} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function OneSchedule(props: {
  readonly id: string;
  readonly schedule: ScheduleJson | undefined;
  readonly words: Words;
  readonly route: Route;
}): JSX.Element {
  const { id, schedule, words, route } = props;
  return (
    <div class="columns">
      <div>
        <Ticks id={id} route={route} />
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
                  <Time atMs={schedule.nextAtMs} />
                </Fact>
                <Fact term="Last">
                  <Time atMs={schedule.previousAtMs} />
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
              <ContentView content={schedule.payload} name="the payload" />
            </Card>
          </>
        )}
      </div>
    </div>
  );
}

function Ticks({ id, route }: { readonly id: string; readonly route: Route }): JSX.Element {
  const page = pageOf(route);
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
              <table class="rows">
                <thead>
                  <tr>
                    <th scope="col">Enqueued</th>
                    <th scope="col">At</th>
                    <th scope="col">Task</th>
                  </tr>
                </thead>
                <tbody>
                  {list.map(({ taskId, atMs }) => (
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
                </tbody>
              </table>
              <Pager
                page={page}
                pages={list.length === PAGE_SIZE ? page + 1 : page}
                href={(next) => withChange(route, { page: next })}
              />
            </>
          )
        }
      </Loaded>
    </Card>
  );
}
