/** The row of keys and limits, which the parts `tasks` and `redis` both have. */
import { scenario } from '../lib/kinds.ts';
import { metric, type BenchCase } from '../lib/part.ts';

const METRICS = [metric('dequeue and complete, cpu', 'µs/task'), metric('enqueue, cpu', 'µs/task')];
const REDIS_METRICS = [
  metric('dequeue and complete, redis cpu', 'µs/task'),
  metric('enqueue, redis cpu', 'µs/task'),
];

export function flowRow(broker: 'embedded' | 'redis', rounds?: number): BenchCase {
  return scenario({
    name: 'keys and limits: enqueued a thousand a call, dequeued and completed 100 at once',
    note: 'A fifth of the tasks is done, while the others wait. The limits hold nothing back.',
    rounds,
    size: { full: 100_000, quick: 1_000, of: 'tasks' },
    metrics:
      broker === 'redis' ? [...REDIS_METRICS, ...METRICS] : [...METRICS, metric('memory', 'bytes/task')],
    contestants: async () => (await import('./flow.ts')).flows(broker),
  });
}
