import type { Command } from 'commander';
import { EscapementError } from '../../core/errors.ts';
import { QueueLock } from '../../diskqueue/queue-lock.ts';
import type {
  LostMessages,
  RepairPlan,
  RepairStep,
  StoredQueue,
} from '../../diskqueue/stored/stored-queue.ts';
import { EXIT_CODES } from '../exit-code.ts';
import { toJson } from '../terminal/json.ts';
import { ProgressBar } from '../terminal/progress-bar.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { count, printable } from '../terminal/text.ts';
import { damageToJson, describeDamage } from './describe.ts';
import { Outcome, someQueuesIn } from './queues-in.ts';

const HELP = `
Ends what a crash has left open, and replaces damaged files by ones that hold
everything in them that is whole. A damaged file is kept beside, as
FILE.damaged. A cursor that is damaged is written anew: what it no longer says
to be acknowledged comes again. No message that is whole is lost, and no message
changes its place.

Nobody may have the queues open; they cannot be opened meanwhile. go-diskqueue
takes no lock: stop nsqd first. If it is interrupted, nothing is lost: repair
again.

Exit codes: 0 all is in order, or would be; 1 the same, and messages are lost
for good; 2 wrong usage; a queue is open, and nothing is done; or something
cannot be read or written, and the other queues are repaired.`;

interface RepairOptions {
  readonly queue?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

interface Repaired extends RepairPlan {
  readonly queue: StoredQueue;
}

export function addRepair(part: Command, terminal: Terminal): void {
  part
    .command('repair')
    .description('put the queues in a folder in order')
    .argument('<dir>', 'the folder')
    .option('--queue <name>', 'only this queue')
    .option('--dry-run', 'say what would be done, and do nothing')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action((dir: string, options: RepairOptions) => repair(dir, options, terminal));
}

async function repair(dir: string, options: RepairOptions, terminal: Terminal): Promise<void> {
  const { out } = terminal;
  const isDryRun = options.dryRun === true;
  const isJson = options.json === true;
  const { folder, queues } = await someQueuesIn(dir, options.queue);
  for (const queue of queues) await requireClosed(queue, folder); // before anything is done to any of them
  const outcome = new Outcome(terminal, isJson);
  const all: Repaired[] = [];
  for (const queue of queues) {
    const repaired = await outcome.of(queue, async () =>
      isDryRun
        ? { queue, ...(await plan(queue, terminal)) }
        : await locked(queue, folder, () => repairOne(queue, terminal)),
    );
    if (repaired === undefined) continue;
    all.push(repaired);
    if (!isJson) await out.print(...render(repaired, isDryRun, terminal));
  }
  const { failed } = outcome;
  if (isJson) await out.print(toJson({ folder, isDryRun, queues: all.map(repairedToJson), failed }));
  if (all.some(({ lost }) => lost.length > 0)) outcome.end(EXIT_CODES.problems);
}

async function requireClosed(queue: StoredQueue, folder: string): Promise<void> {
  if (!(await queue.isOpen())) return;
  throw new EscapementError('ERR_QUEUE_LOCKED', `queue '${queue.name}' in ${folder} is open`);
}

async function locked<R>(queue: StoredQueue, folder: string, action: () => Promise<R>): Promise<R> {
  const lock = await QueueLock.acquire(folder, queue.name);
  try {
    return await action();
  } finally {
    await lock.release();
  }
}

async function repairOne(queue: StoredQueue, terminal: Terminal): Promise<Repaired> {
  const { steps, lost } = await plan(queue, terminal);
  for (const step of steps) {
    terminal.signal.throwIfAborted();
    await step.run();
  }
  return { queue, steps, lost };
}

async function plan(queue: StoredQueue, { err, signal }: Terminal): Promise<RepairPlan> {
  const bar = new ProgressBar(err, printable(queue.name));
  try {
    return await queue.planRepair((done, total) => {
      signal.throwIfAborted();
      bar.update(done, total);
    });
  } finally {
    bar.stop();
  }
}

function repairedToJson({ queue, steps, lost }: Repaired): object {
  return {
    name: queue.name,
    format: queue.format,
    steps: steps.map(({ action, file, detail, keptAs }) => ({ action, file, detail, keptAs })),
    lost: lost.map((loss) => ({ ...damageToJson(loss), messages: loss.messages })),
  };
}

function render({ queue, steps, lost }: Repaired, isDryRun: boolean, { out }: Terminal): string[] {
  const name = `${out.paint('bold', printable(queue.name))} (${queue.format})`;
  if (steps.length === 0 && lost.length === 0) return [`${name}: ${out.paint('green', 'nothing to do')}`];
  const title = isDryRun ? 'this would be done' : 'repaired';
  return [
    `${name}: ${title}`,
    ...steps.map((step) => `  ${step.action.padEnd(12)}  ${printable(describeStep(step))}`),
    ...lost.map((loss) => `  ${out.paint('red', 'lost'.padEnd(12))}  ${printable(describeLoss(loss))}`),
  ];
}

function describeStep({ file, detail, keptAs }: RepairStep): string {
  return `${file}: ${detail}${keptAs === undefined ? '' : `; kept as ${keptAs}`}`;
}

function describeLoss(loss: LostMessages): string {
  const { messages } = loss;
  const total = (loss.lastSequence ?? 0) - (loss.firstSequence ?? 0) + 1;
  const rest =
    messages === undefined || messages === total
      ? ''
      : ` (${count(messages, 'message')} of them not acknowledged)`;
  return describeDamage(loss) + rest;
}
