import type { JSX } from 'preact';
import type { HistoryJson } from '../dashboard-json.ts';
import { withQuery } from './api.ts';
import type { ChartProps } from './chart.tsx';
import { lazy } from './lazy.tsx';
import { Card, Empty, Loaded, PageLayout, Tabs } from './parts.tsx';
import { QueueChoices } from './queue-views.tsx';
import { go, to, useRoute, withChange } from './route.ts';
import { useData } from './use-data.ts';

/** Throughput, backlog and latency over minutes or a day, of all queues or of one. */
export function ChartsPage(): JSX.Element {
  const route = useRoute();
  const span = route.query.get('span') === 'day' ? 'day' : 'minutes';
  const queue = route.query.get('queue') ?? '';
  const history = useData<HistoryJson>(withQuery('history', { queue, span }));
  return (
    <PageLayout
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
            <QueueChoices chosen={queue === '' ? [] : [queue]} />
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
    </PageLayout>
  );
}

const Chart = lazy<ChartProps>(() => import('./chart.tsx').then((file) => file.Chart));

function Charts({ columns }: { readonly columns: HistoryJson }): JSX.Element {
  const chart = (label: string, unit: ChartProps['unit'], ...lines: ChartProps['lines']): JSX.Element => (
    <Card title={label}>
      <Chart label={label} atMs={columns.atMs} unit={unit} lines={lines} />
    </Card>
  );
  const { processedPerS, failedPerS, pending, active, latencyMs } = columns;
  return (
    <div class="chart-grid">
      {chart(
        'Throughput',
        'perS',
        { label: 'Processed', values: processedPerS, colour: '--accent', isFilled: true },
        { label: 'Failed', values: failedPerS, colour: '--state-archived' },
      )}
      {chart(
        'Backlog',
        'tasks',
        { label: 'Pending', values: pending, colour: '--state-pending', isFilled: true },
        { label: 'Active', values: active, colour: '--state-active' },
      )}
      {chart('Latency', 'ms', {
        ...{ label: 'Longest wait', values: latencyMs, colour: '--state-scheduled', isFilled: true },
      })}
    </div>
  );
}
