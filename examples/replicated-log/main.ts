/** `npm run example:replicated-log`: see README.md beside this file. */
import type { ProcessFate } from './example-result.ts';
import { parseOptions, type ExampleOptions } from './options.ts';
import { Cluster } from './processes/cluster.ts';
import { runExample } from './run-example.ts';
import { checkProcesses, selfCheck } from './self-check.ts';
import { ExampleScreen } from './terminal/example-screen.ts';

const EXIT_FAILED = 1;
/** What a shell expects of a program that ended because of Ctrl-C: 128 + SIGINT. */
const EXIT_INTERRUPTED = 130;
/** The leader and one follower. */
const MIN_IN_SYNC = 2;
/** Several times what passes between two heartbeats. */
const SESSION_TIMEOUT_MS = 700;

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  if (typeof options === 'number') return options;
  const interrupt = new AbortController();
  const onSignal = (): void => {
    interrupt.abort();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  try {
    return await show(options, interrupt.signal);
  } catch (error) {
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    return EXIT_FAILED;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

async function show(options: ExampleOptions, signal: AbortSignal): Promise<number> {
  const screen = new ExampleScreen();
  screen.introduce(options);
  const { partitions } = options;
  const cluster = new Cluster({ partitions, minInSync: MIN_IN_SYNC, sessionTimeoutMs: SESSION_TIMEOUT_MS });
  const complaints: string[] = [];
  try {
    const result = await runExample({ cluster, options, signal, observer: screen });
    screen.showResult(result);
    complaints.push(...selfCheck(result));
  } catch (error) {
    if (!signal.aborted) throw error;
    screen.event('interrupted');
  } finally {
    await cluster.stop();
  }
  complaints.push(...checkProcesses(await fatesOf(cluster)));
  if (complaints.length > 0 || !signal.aborted) screen.showVerdict(complaints);
  if (complaints.length > 0) return EXIT_FAILED;
  return signal.aborted ? EXIT_INTERRUPTED : 0;
}

function fatesOf({ processes }: Cluster): Promise<ProcessFate[]> {
  return Promise.all(
    processes.map(async (started) => {
      const end = await started.ended;
      const { name, pid, isRunning } = started;
      return { name, pid, isRunning, end };
    }),
  );
}

// A reader that has seen enough, as in `| head`, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await main(process.argv.slice(2));
