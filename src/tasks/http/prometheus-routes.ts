import { HOUR_MS, SECOND_MS } from '../../core/units.ts';
import { positiveIn, type Action, type Call } from './call.ts';
import { HttpError } from './http-error.ts';
import { credentialsOf } from './http-requests.ts';
import type { Route } from './route-table.ts';

/** How long Prometheus may take for a response, in milliseconds. */
const TIMEOUT_MS = 10_000;

const HOUR_SECONDS = HOUR_MS / SECOND_MS;
const DEFAULT_DURATION_SECONDS = HOUR_SECONDS;

/** The coarsest step for a duration up to so many seconds: a chart of some thousand points at most. */
const STEPS: readonly (readonly [durationSeconds: number, stepSeconds: number])[] = [
  [6 * HOUR_SECONDS, 10],
  [24 * HOUR_SECONDS, 60],
  [8 * 24 * HOUR_SECONDS, 180],
  [30 * 24 * HOUR_SECONDS, 600],
];
const MOST_POINTS = 3_000;

type Query = (filter: string) => string;

/** The queries of asynqmon's charts, by their names in the response; the filter selects queues. */
const QUERIES: readonly (readonly [name: string, query: Query])[] = [
  ['queue_size', (filter) => `asynq_queue_size{${filter}}`],
  ['queue_latency_seconds', (filter) => `asynq_queue_latency_seconds{${filter}}`],
  ['queue_memory_usage_approx_bytes', (filter) => `asynq_queue_memory_usage_approx_bytes{${filter}}`],
  ['tasks_processed_per_second', (filter) => `rate(asynq_tasks_processed_total{${filter}}[5m])`],
  ['tasks_failed_per_second', (filter) => `rate(asynq_tasks_failed_total{${filter}}[5m])`],
  ['error_rate', errorRate],
  ['pending_tasks_by_queue', (filter) => tasksIn('pending', filter)],
  ['retry_tasks_by_queue', (filter) => tasksIn('retry', filter)],
  ['archived_tasks_by_queue', (filter) => tasksIn('archived', filter)],
];

/** Passes the queries of the charts on to a Prometheus server, with the credentials in its URL. */
export function prometheusRoutes(prometheusUrl: string | URL): readonly Route<Action>[] {
  const url = new URL(prometheusUrl);
  return [['GET', '/metrics', (call) => getMetrics(call, url)]];
}

async function getMetrics(call: Call, prometheusUrl: URL): Promise<object> {
  const durationSeconds = positiveIn(call.query, 'duration', DEFAULT_DURATION_SECONDS);
  const endSeconds = positiveIn(call.query, 'endtime', Math.floor(call.nowMs / 1_000));
  const range = {
    start: String(endSeconds - durationSeconds),
    end: String(endSeconds),
    step: String(stepSeconds(durationSeconds)),
  };
  const filter = queueFilter(call.query.get('queues') ?? '');
  const read = async ([name, query]: (typeof QUERIES)[number]): Promise<readonly [string, unknown]> => [
    name,
    await queryRange(prometheusUrl, { query: query(filter), ...range }),
  ];
  try {
    return Object.fromEntries(await Promise.all(QUERIES.map(read)));
  } catch (error) {
    call.report(error);
    throw new HttpError(502, 'Prometheus has not answered');
  }
}

async function queryRange(prometheusUrl: URL, parameters: Record<string, string>): Promise<unknown> {
  const url = new URL(`${prometheusUrl.pathname.replace(/\/$/, '')}/api/v1/query_range`, prometheusUrl);
  url.search = new URLSearchParams(parameters).toString();
  const headers = credentialsOf(url);
  Object.assign(url, { username: '', password: '' }); // `fetch` rejects a URL with credentials
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return await (await fetch(url, { signal, headers, redirect: 'error' })).json();
}

function stepSeconds(durationSeconds: number): number {
  const step = STEPS.find(([limitSeconds]) => durationSeconds <= limitSeconds);
  return step === undefined ? Math.floor(durationSeconds / MOST_POINTS) : step[1];
}

function errorRate(filter: string): string {
  return `rate(asynq_tasks_failed_total{${filter}}[5m]) / rate(asynq_tasks_processed_total{${filter}}[5m])`;
}

function tasksIn(state: string, filter: string): string {
  return `asynq_tasks_enqueued_total{${[filter, `state="${state}"`].filter((part) => part !== '').join(',')}}`;
}

/** Names are taken literally: first for the regular expression, then for the string that it stands in. */
function queueFilter(queues: string): string {
  const names = queues.split(',').filter((name) => name !== '');
  if (names.length === 0) return '';
  const pattern = names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)).join('|');
  return `queue=~${JSON.stringify(pattern)}`;
}
