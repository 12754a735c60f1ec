import type { Command } from 'commander';
import type { QueueSummary } from '../../diskqueue/stored/stored-queue.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { formatBytes, formatCount, harmless, table, toJson, type Columns } from '../terminal/text.ts';
import { addDump } from './dump.ts';
import { eachQueue, queuesIn, type QueueOptions } from './queues-in.ts';
import { addQueueRepair } from './repair.ts';
import { addVerify } from './verify.ts';

export function addDiskQueue(program: Command, terminal: Terminal): void {
  const part = program
    .command('diskqueue')
    .description('inspect and repair disk queues')
    .addHelpText('after', '\nDIR is the dataPath of the queues, whose format is checked or nsq.');
  addLs(part, terminal);
  addVerify(part, terminal);
  addDump(part, terminal);
  addQueueRepair(part, terminal);
}

const LS_HELP = `
Reads what opening the queues would read, and changes nothing: they may be open
meanwhile. go-diskqueue takes no lock, so a queue that nsqd has open is shown as
closed.

Exit codes: 0 listed; 2 wrong usage, or the folder or a queue cannot be read:
the others are listed.`;

interface Row extends QueueSummary {
  readonly name: string;
  readonly format: string;
  readonly isOpen: boolean;
}

const COLUMNS: Columns<Row> = [
  ['queue', ({ name }) => name],
  ['format', ({ format }) => format],
  ['files', ({ files }) => formatCount(files.length), 'right'],
  ['messages', ({ messages }) => formatCount(messages), 'right'],
  ['unacknowledged', ({ unacknowledged }) => formatCount(unacknowledged), 'right'],
  ['size', ({ bytes }) => formatBytes(bytes), 'right'],
  ['open', ({ isOpen }) => (isOpen ? 'yes' : 'no')],
];

function addLs(part: Command, terminal: Terminal): void {
  part
    .command('ls')
    .description('list the queues in a folder')
    .argument('<dir>', 'the folder')
    .option('--json', 'print JSON')
    .addHelpText('after', LS_HELP)
    .action((dir: string, options: QueueOptions) => list(dir, options.json === true, terminal));
}

async function list(dir: string, isJson: boolean, terminal: Terminal): Promise<void> {
  const { out, err } = terminal;
  const { folder, queues } = await queuesIn(dir);
  const { done, failed } = await eachQueue(terminal, isJson, queues, async (queue): Promise<Row> => {
    const isOpen = await queue.isOpen();
    return { name: queue.name, format: queue.format, ...(await queue.summarize()), isOpen };
  });
  if (isJson) await out.print(toJson({ folder, queues: done, failed }));
  else if (done.length > 0) await out.print(table(COLUMNS, done, out.width));
  else if (queues.length === 0) await err.print(`${harmless(folder)}: there are no queues in this folder`);
}
