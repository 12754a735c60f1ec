import type { JSX } from 'preact';
import type { RunJson, ServerJson } from '../dashboard-json.ts';
import { percent, plural } from './format.ts';
import { Facts, Table, type Column } from './lists.tsx';
import { Card, Empty, Loaded, Name, PageLayout, Tag, Time } from './parts.tsx';
import { queueHref } from './route.ts';
import { TaskLink } from './task-table.tsx';
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

const RUN_COLUMNS: readonly Column<RunJson>[] = [
  {
    ...{ head: 'Runs now', kind: 'task-name' },
    cell: ({ queue, taskId, taskType }) => <TaskLink queue={queue} id={taskId} type={taskType} />,
  },
  { head: 'Queue', cell: ({ queue }) => <Name text={queue} /> },
  { head: 'Started', cell: ({ startedAtMs }) => <Time atMs={startedAtMs} /> },
  { head: 'Deadline', cell: ({ deadlineMs }) => <Time atMs={deadlineMs} /> },
];

function ServerCard({ server }: { readonly server: ServerJson }): JSX.Element {
  const { runs, concurrency } = server;
  const busy = (
    <>
      <meter
        min={0}
        max={Math.max(1, concurrency)}
        value={runs.length}
        aria-label="Share of its capacity in use"
      />{' '}
      {runs.length} of {concurrency} <span class="faint">({percent(runs.length, concurrency)})</span>
    </>
  );
  const queues = Object.entries(server.queues).map(([queue, priority]) => (
    <a key={queue} class="tag" href={queueHref(queue)}>
      <Name text={queue} />: {priority}
    </a>
  ));
  return (
    <Card
      title={
        <>
          <Name text={server.host} /> <Tag tone={TONES[server.status]}>{server.status}</Tag>
        </>
      }
      aside={<span class="aside">process {server.pid}</span>}
    >
      <Facts
        kind="across"
        list={[
          ['Busy', busy],
          [server.strictPriority ? 'Queues, in strict order' : 'Queues and priorities', queues],
          ['Started', <Time atMs={server.startedAtMs} />],
          ['Id', <Name text={server.id} mono />],
        ]}
      />
      {runs.length > 0 && (
        <Table
          label={plural(runs.length, 'run')}
          columns={RUN_COLUMNS}
          rows={runs}
          keyOf={({ queue, taskId }) => `${queue}\n${taskId}`}
        />
      )}
    </Card>
  );
}
