import type { Command } from 'commander';
import { EscapementError } from '../../core/errors.ts';
import { lockQueue } from '../../diskqueue/open-log.ts';
import type {
  LostMessages,
  RepairPlan,
  RepairStep,
  StoredQueue,
} from '../../diskqueue/stored/stored-queue.ts';
import { EXIT_CODES, type Terminal } from '../terminal/terminal.ts';
import { counted, printable, toJson } from '../terminal/text.ts';
import {
  damageToJson,
  describeDamage,
  eachQueue,
  endWith,
  someQueuesIn,
  withProgress,
  type QueueOptions,
} from './queues-in.ts';

const HELP = `
Completes what a crash interrupted, and replaces damaged files by files with all
of their intact messages. A damaged file is kept as FILE.damaged. A damaged
cursor is written again: messages of which the acknowledgement is lost are
delivered again. Intact messages are not lost, and keep their order.

The queues must be closed, and cannot be opened meanwhile. go-diskqueue takes no
lock: stop nsqd first. If the repair is interrupted, nothing is lost: repair
again.

Exit codes: 0 all is in order, or would be; 1 the same, and messages are lost
for good; 2 wrong usage; a queue is open, and nothing is done; or something
cannot be read or written, and the other queues are repaired.`;

interface RepairOptions extends QueueOptions {
  readonly dryRun?: boolean;
}

interface Repaired extends RepairPlan {
  readonly queue: StoredQueue;
}

export function addQueueRepair(part: Command, terminal: Terminal): void {
  part
    .command('repair')
    .description('repair the queues in a folder')
    .argument('<dir>', 'the folder')
    .option('--queue <name>', 'only this queue')
    .option('--dry-run', 'print the steps of the repair, and change nothing')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action((dir: string, options: RepairOptions) => repair(dir, options, terminal));
}

async function repair(dir: string, options: RepairOptions, terminal: Terminal): Promise<void> {
  const isDryRun = options.dryRun === true;
  const isJson = options.json === true;
  const { folder, queues } = await someQueuesIn(dir, options.queue);
  for (const queue of queues) await requireClosed(queue, folder); // before any of them is changed
  const { done, failed } = await eachQueue(
    terminal,
    isJson,
    queues,
    async (queue): Promise<Repaired> =>
      isDryRun
        ? { queue, ...(await plan(queue, terminal)) }
        : await locked(queue, folder, () => repairOne(queue, terminal)),
    (repaired) => renderRepair(repaired, isDryRun, describeLoss, terminal),
  );
  const json = { folder, isDryRun, queues: done.map(repairedToJson), failed };
  if (isJson) await terminal.out.print(toJson(json));
  if (done.some(({ lost }) => lost.length > 0)) endWith(terminal, EXIT_CODES.problems);
}

async function requireClosed(queue: StoredQueue, folder: string): Promise<void> {
  if (!(await queue.isOpen())) return;
  throw new EscapementError('ERR_QUEUE_LOCKED', `queue '${queue.name}' in ${folder} is open`);
}

export async function locked<R>(queue: StoredQueue, folder: string, action: () => Promise<R>): Promise<R> {
  const lock = await lockQueue(folder, queue.name);
  try {
    return await action();
  } finally {
    await lock.release();
  }
}

export async function repairOne(queue: StoredQueue, terminal: Terminal): Promise<Repaired> {
  const { steps, lost } = await plan(queue, terminal);
  for (const step of steps) {
    terminal.signal.throwIfAborted();
    await step.run();
  }
  return { queue, steps, lost };
}

export function plan(queue: StoredQueue, terminal: Terminal): Promise<RepairPlan> {
  return withProgress(queue, terminal, (onProgress) => queue.planRepair(onProgress));
}

function repairedToJson({ queue, steps, lost }: Repaired): object {
  return {
    name: queue.name,
    format: queue.format,
    ...stepsToJson(steps),
    lost: lost.map((loss) => ({ ...damageToJson(loss), messages: loss.messages })),
  };
}

export function stepsToJson(steps: readonly RepairStep[]): object {
  return { steps: steps.map(({ action, file, detail, keptAs }) => ({ action, file, detail, keptAs })) };
}

/** @param describe - returns a loss as a line. */
export function renderRepair(
  { queue, steps, lost }: Repaired,
  isDryRun: boolean,
  describe: (loss: LostMessages) => string,
  { out }: Terminal,
): string[] {
  const name = `${out.paint('bold', printable(queue.name))} (${queue.format})`;
  if (steps.length === 0 && lost.length === 0) return [`${name}: ${out.paint('green', 'nothing to do')}`];
  const title = isDryRun ? 'this would be done' : 'repaired';
  return [
    `${name}: ${title}`,
    ...steps.map((step) => `  ${step.action.padEnd(12)}  ${printable(describeStep(step))}`),
    ...lost.map((loss) => `  ${out.paint('red', 'lost'.padEnd(12))}  ${printable(describe(loss))}`),
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
      : ` (${counted(messages, 'message')} of them not acknowledged)`;
  return describeDamage(loss) + rest;
}
