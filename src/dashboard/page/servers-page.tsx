import type { JSX } from 'preact';
import type { RunJson, ServerJson } from '../dashboard-json.ts';
import { percent, plural } from './format.ts';
import { Card, Empty, Fact, Loaded, Name, PageLayout, Table, Tag, Time } from './parts.tsx';
import { queueHref, taskHref } from './route.ts';
import { useData } from './use-data.ts';

/** The servers that have announced themselves, and what each runs now. */
export function ServersPage(): JSX.Element {
  const servers = useData<readonly ServerJson[]>('servers');
  return (
    <PageLayout title="Servers">
      <Loaded of={servers}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No server is running">Tasks wait until a server is started for their queue.</Empty>
          ) : (
            list.map((server) => <ServerCard key={server.id} server={server} />)
          )
        }
      </Loaded>
    </PageLayout>
  );
}

const TONES = { active: 'good', stopped: 'warn', closed: 'bad' } as const;

function ServerCard({ server }: { readonly server: ServerJson }): JSX.Element {
  const { runs, concurrency } = server;
  return (
    <Card
      title={
        <>
          <Name text={server.host} /> <Tag tone={TONES[server.status]}>{server.status}</Tag>
        </>
      }
      aside={<span class="aside">process {server.pid}</span>}
    >
      <dl class="facts across">
        <Fact term="Busy">
          <meter
            min={0}
            max={Math.max(1, concurrency)}
            value={runs.length}
            aria-label="Share of its capacity in use"
          />{' '}
          {runs.length} of {concurrency} <span class="faint">({percent(runs.length, concurrency)})</span>
        </Fact>
        <Fact term={server.strictPriority ? 'Queues, in strict order' : 'Queues and priorities'}>
          {Object.entries(server.queues).map(([queue, priority]) => (
            <a key={queue} class="tag plain" href={queueHref(queue)}>
              <Name text={queue} />: {priority}
            </a>
          ))}
        </Fact>
        <Fact term="Started">
          <Time atMs={server.startedAtMs} />
        </Fact>
        <Fact term="Id">
          <Name text={server.id} mono />
        </Fact>
      </dl>
      {runs.length > 0 && <Runs runs={runs} />}
    </Card>
  );
}

function Runs({ runs }: { readonly runs: readonly RunJson[] }): JSX.Element {
  return (
    <Table columns={['Runs now', 'Queue', 'Started', 'Deadline']} label={plural(runs.length, 'run')}>
      {runs.map((run) => (
        <tr key={`${run.queue}\n${run.taskId}`}>
          <td class="task-name">
            <a class="row-link" data-row href={taskHref(run.queue, run.taskId)}>
              <Name text={run.taskType} />
            </a>
            <span class="faint mono small">
              <Name text={run.taskId} />
            </span>
          </td>
          <td data-label="Queue">
            <Name text={run.queue} />
          </td>
          <td data-label="Started">
            <Time atMs={run.startedAtMs} />
          </td>
          <td data-label="Deadline">
            <Time atMs={run.deadlineMs} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
