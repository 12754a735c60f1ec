import type { Command } from 'commander';
import type { QueueSummary, StoredQueue } from '../../diskqueue/stored/stored-queue.ts';
import { toJson } from '../terminal/json.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { formatBytes, formatCount, harmless, printable, table } from '../terminal/text.ts';
import { Outcome, queuesIn } from './queues-in.ts';

const HELP = `
Reads what opening the queues would read, and changes nothing: they may be open
meanwhile. go-diskqueue takes no lock, so a queue that nsqd has open is shown as
closed.

Exit codes: 0 listed; 2 wrong usage, or the folder or a queue cannot be read:
the others are listed.`;

interface Row extends QueueSummary {
  readonly queue: StoredQueue;
  readonly isOpen: boolean;
}

export function addLs(part: Command, terminal: Terminal): void {
  part
    .command('ls')
    .description('list the queues in a folder')
    .argument('<dir>', 'the folder')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action((dir: string, options: { json?: boolean }) => list(dir, options.json === true, terminal));
}

async function list(dir: string, isJson: boolean, terminal: Terminal): Promise<void> {
  const { out, err, signal } = terminal;
  const { folder, queues } = await queuesIn(dir);
  const outcome = new Outcome(terminal, isJson);
  const rows: Row[] = [];
  for (const queue of queues) {
    signal.throwIfAborted();
    const row = await outcome.of(queue, async () => ({
      ...{ queue, isOpen: await queue.isOpen() },
      ...(await queue.summarize()),
    }));
    if (row !== undefined) rows.push(row);
  }
  if (isJson) await out.print(toJson({ folder, queues: rows.map(rowToJson), failed: outcome.failed }));
  else if (rows.length > 0) await out.print(renderRows(rows, out.width));
  else if (queues.length === 0) await err.print(`${harmless(folder)}: there are no queues in this folder`);
}

function rowToJson({ queue, isOpen, files, messages, unacknowledged, bytes }: Row): object {
  const { name, format } = queue;
  return { name, format, files, messages, unacknowledged, bytes, isOpen };
}

function renderRows(rows: readonly Row[], width: number): string {
  const head = ['queue', 'format', 'files', 'messages', 'unacknowledged', 'size', 'open'];
  return table(
    head,
    ['left', 'left', 'right', 'right', 'right', 'right', 'left'],
    rows.map(({ queue, files, messages, unacknowledged, bytes, isOpen }) => [
      printable(queue.name),
      queue.format,
      formatCount(files.length),
      formatCount(messages),
      formatCount(unacknowledged),
      formatBytes(bytes),
      isOpen ? 'yes' : 'no',
    ]),
    width,
  );
}
