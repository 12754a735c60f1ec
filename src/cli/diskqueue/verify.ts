import type { Command } from 'commander';
import type { StoredQueue, VerifyReport } from '../../diskqueue/stored/stored-queue.ts';
import { EXIT_CODES } from '../exit-code.ts';
import { toJson } from '../terminal/json.ts';
import { ProgressBar } from '../terminal/progress-bar.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { count, formatBytes, formatCount, printable } from '../terminal/text.ts';
import { damageToJson, describeDamage } from './describe.ts';
import { Outcome, someQueuesIn } from './queues-in.ts';

const HELP = `
Reads every byte, and changes nothing. What a crash may leave is a note, and no
problem. A queue that is open meanwhile may be in the midst of something: what
is found then is worth a second look. The nsq format has no checksums, so damage
inside of a message is not found there.

Exit codes: 0 clean; 1 problems found; 2 wrong usage, or something cannot be
read: the other queues are verified.`;

interface Verified {
  readonly queue: StoredQueue;
  readonly isOpen: boolean;
  readonly report: VerifyReport;
}

export function addVerify(part: Command, terminal: Terminal): void {
  part
    .command('verify')
    .description('read every byte of the queues in a folder, and report damage')
    .argument('<dir>', 'the folder')
    .option('--queue <name>', 'only this queue')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action((dir: string, options: { queue?: string; json?: boolean }) =>
      verify(dir, options.queue, options.json === true, terminal),
    );
}

async function verify(
  dir: string,
  name: string | undefined,
  isJson: boolean,
  terminal: Terminal,
): Promise<void> {
  const { folder, queues } = await someQueuesIn(dir, name);
  const outcome = new Outcome(terminal, isJson);
  const all: Verified[] = [];
  for (const queue of queues) {
    const verified = await outcome.of(queue, () => verifyOne(queue, terminal));
    if (verified === undefined) continue;
    all.push(verified);
    if (!isJson) await terminal.out.print(...render(verified, terminal));
  }
  const { failed } = outcome;
  const isClean = failed.length === 0 && all.every(({ report }) => report.problems.length === 0);
  if (isJson) await terminal.out.print(toJson({ folder, isClean, queues: all.map(verifiedToJson), failed }));
  if (!isClean) outcome.end(EXIT_CODES.problems);
}

async function verifyOne(queue: StoredQueue, { err, signal }: Terminal): Promise<Verified> {
  const bar = new ProgressBar(err, printable(queue.name));
  try {
    const isOpen = await queue.isOpen();
    const report = await queue.verify((done, total) => {
      signal.throwIfAborted();
      bar.update(done, total);
    });
    signal.throwIfAborted();
    return { queue, isOpen, report };
  } finally {
    bar.stop();
  }
}

function verifiedToJson({ queue, isOpen, report }: Verified): object {
  const { name, format } = queue;
  const { messages, unacknowledged, bytes, problems, notes } = report;
  return {
    name,
    format,
    isOpen,
    messages,
    unacknowledged,
    bytes,
    problems: problems.map(damageToJson),
    notes,
  };
}

function render({ queue, isOpen, report }: Verified, { out }: Terminal): string[] {
  const { messages, unacknowledged, bytes, problems, notes } = report;
  const verdict =
    problems.length === 0 ? out.paint('green', 'clean') : out.paint('red', count(problems.length, 'problem'));
  const sizes = `${count(messages, 'message')}, ${formatCount(unacknowledged)} unacknowledged, ${formatBytes(bytes)}`;
  const open = isOpen ? ['  note     it is open now: what was found may be in the midst of something'] : [];
  return [
    `${out.paint('bold', printable(queue.name))} (${queue.format}): ${verdict}; ${sizes}`,
    ...problems.map((problem) => `  ${out.paint('red', 'problem')}  ${printable(describeDamage(problem))}`),
    ...notes.map((note) => `  note     ${printable(note)}`),
    ...open,
  ];
}
