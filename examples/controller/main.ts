/**
 * A controller, as Kubernetes has them: renders the JSON files of a directory into another one, whatever happens to them.
 *
 *     npm run example:controller                                                  shows itself in temporary directories
 *     npm run example:controller -- --source ./settings --output ./rendered    watches a directory of yours until Ctrl-C
 *
 * You see each file that is rendered, retried or removed. Alone it edits some files: one that is saved a hundred times in a row is
 * rendered a few times; one with a syntax error is tried again later and later, given up, and rendered when it is repaired; an output that
 * is removed comes back with the next resync. `--port` serves the metrics of the queue to Prometheus.
 */
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { prometheusMetrics } from 'escapement/metrics/prometheus';
import { Registry } from 'prom-client';
import { command, exitCodeOf, integer, number, say, stopSignal } from '../command-line.ts';
import { Controller, type Result } from './controller.ts';

const program = command(
  'example:controller',
  'Renders the *.json below one directory to *.conf below another, and keeps them so.',
)
  .option('--source <directory>', 'where the *.json are; without it, the program shows itself')
  .option('--output <directory>', 'where the *.conf go; made if there is none')
  .option('--workers <number>', 'files that are worked on at once (1 to 100)', integer(1, 100), 4)
  .option('--max-retries <number>', 'retries before a file is given up (0 to 100)', integer(0, 100), 5)
  .option('--resync <seconds>', 'how often everything is listed (0.1 to 3600)', number(0.1, 3_600), 30)
  .option('--port <number>', 'serve http://127.0.0.1:<port>/metrics (0 to 65535)', integer(0, 65_535))
  .parse();
const options = program.opts<{
  source?: string;
  output?: string;
  workers: number;
  maxRetries: number;
  resync: number;
  port?: number;
}>();

const stop = stopSignal();
const registry = new Registry();
/** Files that are not as they should be, with the reason. */
const failing = new Map<string, unknown>();

const isAlone = options.source === undefined && options.output === undefined;
await exitCodeOf(isAlone ? showItself() : watchDirectory(await directories()), stop);

async function watchDirectory({ source, output }: { source: string; output: string }): Promise<void> {
  const controller = new Controller({
    ...{ source, output, report },
    ...{ workers: options.workers, maxRetries: options.maxRetries, retryDelayMs: 100 },
    resyncMs: options.resync * 1_000,
    metrics: prometheusMetrics({ registry }),
  });
  const server = options.port === undefined ? undefined : await serveMetrics(options.port);
  say(`watching ${source}; Ctrl-C stops it`);
  const running = controller.run();
  if (!stop.aborted) await once(stop, 'abort');
  const waiting = await controller.stop();
  await running;
  server?.close();
  say(`stopped: what was queued is done; retries that were pending: ${waiting.join(', ') || 'none'}`);
  for (const [key, error] of failing) say(`not rendered: ${key}: ${messageOf(error)}`);
  if (failing.size > 0) process.exitCode = 1;
}

/** One line for each file. What does not change anything is not worth one. */
function report(result: Result, key: string, error?: unknown): void {
  if (error === undefined) failing.delete(key);
  else failing.set(key, error);
  if (result === 'unchanged' || result === 'listed') return;
  say(`${result.padEnd(8)} ${key}${result === 'gave up' ? `: ${messageOf(error)}` : ''}`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function serveMetrics(port: number): Promise<ReturnType<typeof createServer>> {
  const server = createServer((_request, response) => {
    registry.metrics().then(
      (text) => response.setHeader('content-type', registry.contentType).end(text),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  say(`metrics: http://127.0.0.1:${(server.address() as { port: number }).port}/metrics`);
  return server.unref();
}

async function directories(): Promise<{ source: string; output: string }> {
  const { source = '', output = '' } = options;
  if (source === '' || output === '') program.error('error: --source and --output go together');
  const isDirectory = await stat(source).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (!isDirectory) program.error(`error: --source must be a directory. Received '${source}'`);
  if (isInside(source, output) || isInside(output, source))
    program.error('error: --source and --output must not be inside each other');
  return { source, output };
}

function isInside(outer: string, inner: string): boolean {
  return relative(outer, inner).split(/[\\/]/)[0] !== '..';
}

async function showItself(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'escapement-controller-'));
  const [source, output] = [join(directory, 'source'), join(directory, 'output')];
  const results: Record<string, number> = {};
  await mkdir(join(source, 'shop'), { recursive: true });
  await writeFile(join(source, 'shop/prices.json'), '{ "currency": "EUR", "vat": 0.19 }');
  const controller = new Controller({
    ...{ source, output, workers: 4, maxRetries: 3, retryDelayMs: 50, resyncMs: 1_000 },
    report: (result, key, error) => {
      results[result] = (results[result] ?? 0) + 1;
      report(result, key, error);
    },
  });
  const running = controller.run();
  try {
    for (const { afterMs, text, edit } of edits(source, output)) {
      await sleep(afterMs, undefined, { signal: stop });
      say(`── ${text}`);
      await edit();
    }
    await sleep(1_200, undefined, { signal: stop });
  } finally {
    await controller.stop();
    await running;
    await rm(directory, { recursive: true });
  }
  console.log(
    `\n${Object.entries(results)
      .map(([result, times]) => `${times} ${result}`)
      .join(', ')}`,
  );
}

interface Edit {
  readonly afterMs: number;
  readonly text: string;
  readonly edit: () => Promise<void>;
}

/** What may happen to the files while the controller runs. */
function edits(source: string, output: string): Edit[] {
  return [
    {
      afterMs: 400,
      text: 'mail.json is saved a hundred times in a row',
      edit: async () => {
        for (let port = 1; port <= 100; port++)
          await save(join(source, 'mail.json'), `{ "smtp": { "port": ${port} } }`);
      },
    },
    {
      afterMs: 400,
      text: 'shop/stock.json has a syntax error',
      edit: () => save(join(source, 'shop/stock.json'), '{ "warehouse": '),
    },
    {
      afterMs: 1_000,
      text: 'shop/stock.json is repaired',
      edit: () => save(join(source, 'shop/stock.json'), '{ "warehouse": "Leipzig" }'),
    },
    { afterMs: 400, text: 'an output is removed', edit: () => rm(join(output, 'mail.conf')) },
    {
      afterMs: 400,
      text: 'the directory shop is removed',
      edit: () => rm(join(source, 'shop'), { recursive: true }),
    },
  ];
}

/** As editors do, so that no reader sees half a file. */
async function save(path: string, text: string): Promise<void> {
  await writeFile(`${path}~`, text);
  await rename(`${path}~`, path);
}
