import { expect, test } from 'vitest';
import { filesIn, read } from './read.ts';

const NAME = /\b(?:asynq|diskqueue|escapement|purgatory|timer|workqueue)_\w+/g;

/** Every string literal of the sources that is the name of a metric. */
function metricsOfSources(): Set<string> {
  const quoted = new RegExp(`'(${NAME.source})'`, 'g');
  const names = filesIn('src', '.ts').flatMap((path) => [...read(path).matchAll(quoted)]);
  return new Set(names.map(([, name = '']) => name));
}

test('the page of metrics has a row for every metric of the sources, and none for another', () => {
  const rows = [...read('docs/metrics.md').matchAll(/^\| `(\w+_\w+)` +\| (?:counter|gauge|histogram)/gm)];
  const sources = metricsOfSources();
  expect(sources.size).toBeGreaterThan(30);
  expect(rows.map(([, name]) => name).sort()).toEqual([...sources].sort());
});

interface Dashboard {
  readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
}

/** Queries of the page: those in the block of autoscaling, each under its comment, and KEDA's. */
function queriesOfFlowControl(): string[] {
  const [, page = ''] = read('docs/flow-control.md').split('### Autoscaling');
  const [, block = ''] = /^```\n([^]+?)^```/m.exec(page) ?? [];
  const [, keda = ''] = /query: >-\n([^]+?)\n +threshold/.exec(page) ?? [];
  return [...block.split(/^#.*\n/m).filter((query) => query !== ''), keda];
}

const { panels } = JSON.parse(read('docs/monitoring/grafana-dashboard.json')) as Dashboard;
const QUERIES = {
  'the alert rules': [...read('docs/monitoring/prometheus-rules.yml').matchAll(/^ +expr: '(.+)'$/gm)].map(
    ([, query = '']) => query,
  ),
  'the page of flow control': queriesOfFlowControl(),
  'the dashboard': panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
};

/** What is left of a query when every pair of brackets, text and known word is taken out of it. */
function unknownIn(query: string): string {
  let rest = query
    .replaceAll(/"[^"]*"/g, '')
    .replaceAll(NAME, '')
    .replaceAll(/\b(queue|state|type)=~?/g, '');
  rest = rest.replaceAll(/\[\d+[smh](:(\d+[smh])?)?\]/g, '').replaceAll(/\b[\d.]+(e\d+)?\b/g, '');
  rest = rest.replaceAll(/\b(sum|max|rate|increase|delta|deriv|histogram_quantile|absent|by|and)\b/g, '');
  rest = rest.replaceAll(/\b(queue|state|type|reason|folder|le|timer|name|purgatory)\b/g, '');
  for (let before = ''; before !== rest;) {
    before = rest;
    rest = rest.replaceAll(/\([\s,]*\)|\{[\s,]*\}/g, '');
  }
  return rest.replaceAll(/==|[-+></\s]/g, '');
}

test.each(Object.entries(QUERIES))('%s query metrics that exist, in well-formed PromQL', (_file, queries) => {
  expect(queries.length).toBeGreaterThan(3);
  const sources = metricsOfSources();
  for (const query of queries) {
    const names = (query.match(NAME) ?? []).map((name) => name.replace(/_bucket$/, ''));
    expect(names.filter((name) => !sources.has(name))).toEqual([]);
    expect(names.length).toBeGreaterThan(0);
    expect([query, unknownIn(query)]).toEqual([query, '']);
  }
});

test('the page of metrics names every attribute of a span', () => {
  const source = read('src/tasks/otel/open-telemetry-tracing.ts');
  const attributes = [...source.matchAll(/^ {2}\w+: '((?:messaging|error|escapement)\.[\w.]+)',$/gm)];
  expect(attributes.length).toBeGreaterThan(9);
  const page = read('docs/metrics.md');
  expect(attributes.map(([, name]) => name).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
