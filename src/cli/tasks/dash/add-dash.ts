import { Option, type Command } from 'commander';
import { CommandError } from '../../command-error.ts';
import { EXIT_CODES } from '../../exit-code.ts';
import { duration } from '../options.ts';
import { does, type Run, type Surroundings } from '../run.ts';
import { FIRST_STATE } from './dash-state.ts';
import { dashLines } from './dash-view.ts';
import { Dash } from './dash.ts';
import { readDash } from './read-dash.ts';

/** asynq's. */
const DEFAULT_REFRESH_MS = 8_000;
const MIN_REFRESH_MS = 1_000;

const HELP = `
Keys: j, k or the arrows choose a row; enter goes into it; h, l choose a state;
n, p a page; q or escape goes back, and ends it from the queues; ? for help;
ctrl-c ends it.`;

interface DashOptions {
  readonly refresh: number;
  readonly once?: boolean;
}

/** `escapement tasks dash`: queues and tasks, live. */
export function addDash(part: Command, surroundings: Surroundings): void {
  const command = part
    .command('dash')
    .description('watch queues and tasks, live')
    .addOption(
      new Option('--refresh <duration>', 'how often it is read again, at least 1s')
        .argParser(duration(MIN_REFRESH_MS))
        .default(DEFAULT_REFRESH_MS, '8s'),
    )
    .option('--once', 'print the queues once, and end')
    .addHelpText('after', HELP);
  does<DashOptions>(command, surroundings, dash);
}

async function dash(run: Run<DashOptions>): Promise<void> {
  const { terminal, target, options, isJson } = run;
  if (isJson) throw new CommandError('the dash is for people; stats has --json');
  if (options.once === true) return printOnce(run);
  if (!terminal.out.isTerminal || !run.keyboard.isTTY) {
    throw new CommandError('the dash needs a terminal; --once prints the queues once');
  }
  const terminate = (): void => {
    terminal.exitCode = EXIT_CODES.terminated;
    running.stop();
  };
  const running = new Dash(run, target, options.refresh);
  process.once('SIGTERM', terminate).once('SIGHUP', terminate);
  try {
    await running.run();
  } finally {
    process.off('SIGTERM', terminate).off('SIGHUP', terminate);
  }
}

async function printOnce({ terminal, target, now }: Run<DashOptions>): Promise<void> {
  const data = await readDash(target, FIRST_STATE, 1);
  const nowMs = now();
  const frame = {
    name: target.name,
    isReading: false,
    error: undefined,
    readAtMs: nowMs,
    nowMs,
    height: Infinity,
  };
  const lines = dashLines({ ...FIRST_STATE, row: -1 }, data, frame).slice(0, -2);
  await terminal.out.print(...lines.map(({ text }) => text));
}
