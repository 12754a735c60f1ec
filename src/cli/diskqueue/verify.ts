import type { Command } from 'commander';
import type { OnProgress, StoredQueue, VerifyReport } from '../../diskqueue/stored/stored-queue.ts';
import { endWith, EXIT_CODES, type Terminal } from '../terminal/terminal.ts';
import { counted, formatBytes, formatCount, printable, toJson } from '../terminal/text.ts';
import { describeDamage, eachQueue, someQueuesIn, withProgress, type QueueOptions } from './queues-in.ts';

const HELP = `
Reads every byte, and changes nothing. What a crash may leave is a note, and not
a problem. If a queue is open meanwhile, verify it again when it is closed: a
write in progress may look like damage. The nsq format has no checksums, so
damage inside of a message is not found there.

Exit codes: 0 clean; 1 problems found; 2 wrong usage, or something cannot be
read: the other queues are verified.`;

/** What is printed as JSON. */
type Verified<Report extends VerifyReport> = Report & {
  readonly name: string;
  readonly format: string;
  readonly isOpen: boolean;
};

export function addVerify(part: Command, terminal: Terminal): void {
  part
    .command('verify')
    .description('read every byte of the queues in a folder, and report damage')
    .argument('<dir>', 'the folder')
    .option('--queue <name>', 'only this queue')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action((dir: string, options: QueueOptions) => verify(dir, options, terminal));
}

async function verify(dir: string, { queue, json }: QueueOptions, terminal: Terminal): Promise<void> {
  const isJson = json === true;
  const { folder, queues } = await someQueuesIn(dir, queue);
  const { done, failed } = await eachQueue(
    terminal,
    isJson,
    queues,
    (one) => verifyOne(one, terminal),
    (verified) => renderVerify(verified, sizesOf(verified), 'message', terminal),
  );
  const isClean = failed.length === 0 && done.every(({ problems }) => problems.length === 0);
  if (isJson) await terminal.out.print(toJson({ folder, isClean, queues: done, failed }));
  if (!isClean) endWith(terminal, EXIT_CODES.problems);
}

/** A queue, or a log of tasks. */
interface Verifiable<Report> extends StoredQueue {
  verify(onProgress: OnProgress): Promise<Report & VerifyReport>;
}

export async function verifyOne<Report extends VerifyReport>(
  queue: Verifiable<Report>,
  terminal: Terminal,
): Promise<Verified<Report>> {
  const isOpen = await queue.isOpen();
  const report = await withProgress(queue, terminal, (onProgress) => queue.verify(onProgress));
  terminal.signal.throwIfAborted();
  return { name: queue.name, format: queue.format, isOpen, ...report };
}

function sizesOf({ messages, unacknowledged, bytes }: VerifyReport): string {
  return `${counted(messages, 'message')}, ${formatCount(unacknowledged)} unacknowledged, ${formatBytes(bytes)}`;
}

/** @param unit - what is damaged: messages, or records. */
export function renderVerify(
  { name, format, isOpen, problems, notes }: Verified<VerifyReport>,
  sizes: string,
  unit: string,
  { out }: Terminal,
): string[] {
  const verdict =
    problems.length === 0
      ? out.paint('green', 'clean')
      : out.paint('red', counted(problems.length, 'problem'));
  const open = isOpen ? ['  note     it is open: a write in progress may look like damage'] : [];
  return [
    `${out.paint('bold', printable(name))} (${format}): ${verdict}; ${sizes}`,
    ...problems.map(
      (problem) => `  ${out.paint('red', 'problem')}  ${printable(describeDamage(problem, unit))}`,
    ),
    ...notes.map((note) => `  note     ${printable(note)}`),
    ...open,
  ];
}
