import type { JSX } from 'preact';
import type { HealthJson } from '../dashboard-json.ts';
import { bytes, count, durationText } from './format.ts';
import { Card, Fact, Figure, Loaded, Name, PageLayout } from './parts.tsx';
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
  const { median, longest } = process.loopDelayMs;
  return (
    <section class="figures" aria-label="Process">
      <Figure
        label="CPU"
        value={process.cpu === undefined ? '–' : Math.round(100 * process.cpu)}
        unit="% of a core"
      />
      <Figure label="Memory" value={bytes(process.residentBytes)} note={`${bytes(process.heapBytes)} heap`} />
      <Figure
        label="Event loop delay"
        value={durationText(median)}
        tone={longest > 200 ? 'warn' : 'plain'}
        note={`longest ${durationText(longest)} in a minute`}
      />
      <Figure
        label="Uptime"
        value={durationText(process.uptimeMs)}
        note={`process ${process.pid}, Node ${process.node}`}
      />
    </section>
  );
}

function Folder({ folder }: { readonly folder: NonNullable<HealthJson['folder']> }): JSX.Element {
  return (
    <Card title="Folder">
      <dl class="facts across">
        <Fact term="Path">
          <Name text={folder.path} mono />
        </Fact>
        <Fact term="Files">{count(folder.files)}</Fact>
        <Fact term="Size">{bytes(folder.bytes)}</Fact>
      </dl>
    </Card>
  );
}

type Info = NonNullable<HealthJson['redis']>;

function Redis({ info }: { readonly info: Info }): JSX.Element {
  const number = (name: string): number => Number(info[name] ?? 0);
  const hits = number('keyspace_hits');
  const misses = number('keyspace_misses');
  const limit = number('maxmemory');
  return (
    <>
      <h2 class="section">Redis</h2>
      <section class="figures" aria-label="Redis">
        <Figure label="Version" value={info['redis_version'] ?? '–'} note={info['redis_mode']} />
        <Figure
          label="Memory"
          value={bytes(number('used_memory'))}
          note={limit === 0 ? 'no limit set' : `of ${bytes(limit)}`}
        />
        <Figure label="Commands" value={count(number('instantaneous_ops_per_sec'))} unit="/s" />
        <Figure
          label="Clients"
          value={count(number('connected_clients'))}
          note={`${count(number('blocked_clients'))} blocked`}
        />
        <Figure
          label="Hit rate"
          value={hits + misses === 0 ? '–' : Math.round((100 * hits) / (hits + misses))}
          unit="%"
        />
        <Figure
          label="Evicted keys"
          value={count(number('evicted_keys'))}
          {...(number('evicted_keys') > 0 && { tone: 'bad', note: 'tasks may be lost: use noeviction' })}
        />
        <Figure label="Uptime" value={durationText(1_000 * number('uptime_in_seconds'))} />
      </section>
      <Card>
        <details>
          <summary class="pad">Everything that Redis reports</summary>
          <dl class="facts">
            {Object.entries(info).map(([name, value]) => (
              <Fact key={name} term={name}>
                <Name text={value} mono />
              </Fact>
            ))}
          </dl>
        </details>
      </Card>
    </>
  );
}
