import type { JSX } from 'preact';
import type { HealthJson } from '../dashboard-json.ts';
import { bytes, count, durationText } from './format.ts';
import { Facts } from './lists.tsx';
import { Card, Figures, Loaded, Name, PageLayout } from './parts.tsx';
import { useData } from './use-data.ts';

/** How the process of the dashboard is, and where the tasks are kept. */
export function HealthPage(): JSX.Element {
  const health = useData<HealthJson>('health');
  return (
    <PageLayout
      title="Health"
      note="The process that serves this dashboard, and what it reads the tasks from."
    >
      <Loaded of={health}>
        {({ process, redis, folder }) => (
          <>
            <h2 class="section">Process</h2>
            <ProcessFigures process={process} />
            {folder !== undefined && <Folder folder={folder} />}
            {redis !== undefined && <Redis info={redis} />}
          </>
        )}
      </Loaded>
    </PageLayout>
  );
}

function ProcessFigures({ process }: { readonly process: HealthJson['process'] }): JSX.Element {
  const { cpu, residentBytes, heapBytes, uptimeMs, pid, node } = process;
  const { median, longest } = process.loopDelayMs;
  const percentage = cpu === undefined ? '–' : Math.round(100 * cpu);
  const tone = longest > 200 ? 'warn' : 'plain';
  return (
    <Figures
      label="Process"
      list={[
        ['CPU', percentage, undefined, { unit: '% of a core' }],
        ['Memory', bytes(residentBytes), `${bytes(heapBytes)} heap`],
        ['Event loop delay', durationText(median), `longest ${durationText(longest)} in a minute`, { tone }],
        ['Uptime', durationText(uptimeMs), `process ${pid}, Node ${node}`],
      ]}
    />
  );
}

function Folder({ folder }: { readonly folder: NonNullable<HealthJson['folder']> }): JSX.Element {
  return (
    <Card title="Folder">
      <Facts
        kind="across"
        list={[
          ['Path', <Name text={folder.path} mono />],
          ['Files', count(folder.files)],
          ['Size', bytes(folder.bytes)],
        ]}
      />
    </Card>
  );
}

type Info = NonNullable<HealthJson['redis']>;

function Redis({ info }: { readonly info: Info }): JSX.Element {
  const number = (name: string): number => Number(info[name] ?? 0);
  const hits = number('keyspace_hits');
  const misses = number('keyspace_misses');
  const hitRate = hits + misses === 0 ? '–' : Math.round((100 * hits) / (hits + misses));
  const limit = number('maxmemory');
  const evicted = number('evicted_keys');
  return (
    <>
      <h2 class="section">Redis</h2>
      <Figures
        label="Redis"
        list={[
          ['Version', info['redis_version'] ?? '–', info['redis_mode']],
          ['Memory', bytes(number('used_memory')), limit === 0 ? 'no limit set' : `of ${bytes(limit)}`],
          ['Commands', count(number('instantaneous_ops_per_sec')), undefined, { unit: '/s' }],
          ['Clients', count(number('connected_clients')), `${count(number('blocked_clients'))} blocked`],
          ['Hit rate', hitRate, undefined, { unit: '%' }],
          evicted === 0
            ? ['Evicted keys', 0]
            : ['Evicted keys', count(evicted), 'tasks may be lost: use noeviction', { tone: 'bad' }],
          ['Uptime', durationText(1_000 * number('uptime_in_seconds'))],
        ]}
      />
      <Card>
        <details>
          <summary class="pad">Everything that Redis reports</summary>
          <Facts list={Object.entries(info).map(([name, value]) => [name, <Name text={value} mono />])} />
        </details>
      </Card>
    </>
  );
}
