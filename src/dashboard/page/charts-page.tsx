import type { JSX } from 'preact';
import type { HistoryJson } from '../dashboard-json.ts';
import { withQuery } from './api.ts';
import type { ChartProps } from './chart.tsx';
import { lazy } from './lazy.tsx';
import { useLive } from './live.ts';
import { Card, Empty, Loaded, Page, Tabs } from './parts.tsx';
import { go, to, withChange, type Route } from './route.ts';
import { useData } from './use-data.ts';

/** Throughput, backlog and latency over minutes or a day, of all queues or of one. */
export function ChartsPage({ route }: { readonly route: Route }): JSX.Element {
  const span = route.query.get('span') === 'day' ? 'day' : 'minutes';
  const queue = route.query.get('queue') ?? '';
  const { live } = useLive();
  const history = useData<HistoryJson>(withQuery('history', { queue, span }));
  const names = (live?.queues ?? []).map((one) => one.queue);
  return (
    <Page
      title="Charts"
      actions={
        <label class="inline">
          Queue
          <select
            onChange={({ currentTarget }) => {
              go(withChange(route, { queue: currentTarget.value }));
            }}
          >
            <option value="" selected={queue === ''}>
              All queues
            </option>
            {[...new Set(queue === '' ? names : [queue, ...names])].map((name) => (
              <option key={name} value={name} selected={name === queue}>
                {name}
              </option>
            ))}
          </select>
        </label>
      }
    >
      <Tabs
        label="Span"
        current={span}
        items={[
          { id: 'minutes', label: 'Five minutes', href: to(['charts'], { queue }) },
          { id: 'day', label: 'One day', href: to(['charts'], { queue, span: 'day' }) },
        ]}
      />
      <Loaded of={history}>
        {(columns) =>
          columns.atMs.length < 2 ? (
            <Empty title="Not enough samples yet">
              {span === 'day' ? 'A sample is taken every minute' : 'A sample is taken every second'} while
              this process runs.
            </Empty>
          ) : (
            <Charts columns={columns} />
          )
        }
      </Loaded>
    </Page>
  );
}

const Chart = lazy<ChartProps>(() => import('./chart.tsx').then((file) => file.Chart));

function Charts({ columns }: { readonly columns: HistoryJson }): JSX.Element {
  const { atMs } = columns;
  return (
    <div class="chart-grid">
      <Card title="Throughput">
        <Chart
          label="Throughput"
          atMs={atMs}
          unit="perS"
          lines={[
            { label: 'Processed', values: columns.processedPerS, colour: '--accent', isFilled: true },
            { label: 'Failed', values: columns.failedPerS, colour: '--state-archived' },
          ]}
        />
      </Card>
      <Card title="Backlog">
        <Chart
          label="Backlog"
          atMs={atMs}
          unit="tasks"
          lines={[
            { label: 'Pending', values: columns.pending, colour: '--state-pending', isFilled: true },
            { label: 'Active', values: columns.active, colour: '--state-active' },
          ]}
        />
      </Card>
      <Card title="Latency">
        <Chart
          label="Latency"
          atMs={atMs}
          unit="ms"
          lines={[
            { label: 'Longest wait', values: columns.latencyMs, colour: '--state-scheduled', isFilled: true },
          ]}
        />
      </Card>
    </div>
  );
}
