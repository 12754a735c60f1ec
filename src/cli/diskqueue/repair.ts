import type { Command } from 'commander';
import { EscapementError } from '../../core/errors.ts';
import { lockQueue } from '../../diskqueue/open-log.ts';
import type {
  LostMessages,
  RepairPlan,
  RepairStep,
  StoredQueue,
} from '../../diskqueue/stored/stored-queue.ts';
import { endWith, EXIT_CODES, type Terminal } from '../terminal/terminal.ts';
import { counted, printable, toJson } from '../terminal/text.ts';
import { describeDamage, eachQueue, someQueuesIn, withProgress, type QueueOptions } from './queues-in.ts';

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

/** What is printed as JSON. */
interface Repaired extends RepairPlan {
  readonly name: string;
  readonly format: string;
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
    (queue) => repairOne(queue, folder, isDryRun, terminal),
    (repaired) => renderRepair(repaired, isDryRun, 'message', terminal),
  );
  if (isJson) await terminal.out.print(toJson({ folder, isDryRun, queues: done, failed }));
  if (done.some(({ lost }) => lost.length > 0)) endWith(terminal, EXIT_CODES.problems);
}

async function requireClosed(queue: StoredQueue, folder: string): Promise<void> {
  if (!(await queue.isOpen())) return;
  throw new EscapementError('ERR_QUEUE_LOCKED', `queue '${queue.name}' in ${folder} is open`);
}

/** Holds the lock of the queue while it is changed. */
export async function repairOne(
  queue: StoredQueue,
  folder: string,
  isDryRun: boolean,
  terminal: Terminal,
): Promise<Repaired> {
  const { name, format } = queue;
  const lock = isDryRun ? undefined : await lockQueue(folder, name);
  try {
    const { steps, lost } = await withProgress(queue, terminal, (onProgress) => queue.planRepair(onProgress));
    for (const step of isDryRun ? [] : steps) {
      terminal.signal.throwIfAborted();
      await step.run();
    }
    return { name, format, steps, lost };
  } finally {
    await lock?.release();
  }
}

/** @param unit - what is lost: messages, or records. */
export function renderRepair(
  { name, format, steps, lost }: Repaired,
  isDryRun: boolean,
  unit: string,
  { out }: Terminal,
): string[] {
  const title = `${out.paint('bold', printable(name))} (${format})`;
  if (steps.length === 0 && lost.length === 0) return [`${title}: ${out.paint('green', 'nothing to do')}`];
  return [
    `${title}: ${isDryRun ? 'this would be done' : 'repaired'}`,
    ...steps.map((step) => `  ${step.action.padEnd(12)}  ${printable(describeStep(step))}`),
    ...lost.map((loss) => `  ${out.paint('red', 'lost'.padEnd(12))}  ${printable(describeLoss(loss, unit))}`),
  ];
}

function describeStep({ file, detail, keptAs }: RepairStep): string {
  return `${file}: ${detail}${keptAs === undefined ? '' : `; kept as ${keptAs}`}`;
}

function describeLoss(loss: LostMessages, unit: string): string {
  const { messages, firstSequence = 0, lastSequence = 0 } = loss;
  const line = describeDamage(loss, unit);
  if (messages === undefined || messages === lastSequence - firstSequence + 1) return line;
  return `${line} (${counted(messages, unit)} of them not acknowledged)`;
}
