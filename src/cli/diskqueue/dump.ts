import { Option, type Command } from 'commander';
import type { ListedMessage, StoredQueue } from '../../diskqueue/stored/stored-queue.ts';
import { CommandError } from '../command-error.ts';
import { wholeNumber } from '../options.ts';
import { EXIT_CODES, printError, type Terminal } from '../terminal/terminal.ts';
import { counted, printable, printableBytes } from '../terminal/text.ts';
import { someQueuesIn, type QueueOptions } from './queues-in.ts';

const HELP = `
One message a line, in order: its sequence number, a tab, and the message as

  text    UTF-8, with control characters as \\n or \\x1b; byte for byte if it is
          not UTF-8
  hex, base64
  json    an object, with the data in base64:
          {"sequence":1,"isAcknowledged":false,"data":"aGVsbG8="}

With --raw, only the bytes of the messages, with nothing before, between or
after them.

Changes nothing: the messages stay. Messages of the nsq format have no sequence
numbers: those that are still there are numbered from 1.

Exit codes: 0 printed; 1 printed without the damaged parts; 2 wrong usage, or
something cannot be read.`;

type Format = 'text' | 'hex' | 'base64' | 'json' | 'raw';

interface DumpOptions extends QueueOptions {
  readonly all?: boolean;
  readonly limit?: number;
  readonly from?: number;
  readonly format: Exclude<Format, 'raw'>;
  readonly raw?: boolean;
}

const RENDER: Record<Format, (message: ListedMessage) => string | Uint8Array> = {
  text: ({ sequence, data }) => `${sequence}\t${printableBytes(data)}\n`,
  hex: ({ sequence, data }) => `${sequence}\t${Buffer.from(data).toString('hex')}\n`,
  base64: ({ sequence, data }) => `${sequence}\t${Buffer.from(data).toString('base64')}\n`,
  json: ({ sequence, isAcknowledged, data }) =>
    `${JSON.stringify({ sequence, isAcknowledged, data: Buffer.from(data).toString('base64') })}\n`,
  raw: ({ data }) => data,
};

export function addDump(part: Command, terminal: Terminal): void {
  part
    .command('dump')
    .description('print the unacknowledged messages of a queue')
    .argument('<dir>', 'the folder')
    .option('--queue <name>', 'the queue; required if there are several')
    .option('--all', 'also acknowledged messages that are still there')
    .option('--from <sequence>', 'start at this message', wholeNumber(0))
    .option('--limit <n>', 'maximum number of messages', wholeNumber(0))
    .addOption(
      new Option('--format <format>', 'format of messages')
        .choices(['text', 'hex', 'base64', 'json'])
        .default('text'),
    )
    .addOption(new Option('--raw', 'only the bytes of the messages').conflicts(['format', 'json']))
    .addOption(new Option('--json', 'the same as --format json').conflicts('format'))
    .addHelpText('after', HELP)
    .action((dir: string, options: DumpOptions) => dump(dir, options, terminal));
}

async function dump(dir: string, options: DumpOptions, terminal: Terminal): Promise<void> {
  const { out, signal } = terminal;
  const { limit = Infinity, from = 0, all: isAll = false } = options;
  const queue = await oneQueueIn(dir, options.queue);
  const render = RENDER[formatOf(options)];
  let damages = 0;
  let printed = 0;
  const onDamage = (): void => {
    damages++;
  };
  if (limit === 0) return;
  for await (const message of queue.messages({ isAll, from, onDamage })) {
    signal.throwIfAborted();
    await out.add(render(message));
    printed++;
    if (printed >= limit || out.isGone) break;
  }
  await out.flush();
  if (damages === 0 || out.isGone) return;
  terminal.exitCode = EXIT_CODES.problems;
  await printError(terminal, `${counted(damages, 'damaged part')} left out; 'verify' lists them`);
}

function formatOf({ format, raw, json }: DumpOptions): Format {
  if (raw === true) return 'raw';
  return json === true ? 'json' : format;
}

async function oneQueueIn(dir: string, name: string | undefined): Promise<StoredQueue> {
  const { folder, queues } = await someQueuesIn(dir, name);
  const [queue] = queues;
  if (queue !== undefined && queues.length === 1) return queue;
  if (name !== undefined) {
    throw new CommandError(
      `${folder}: there are two queues '${name}', one of each format; move the files of one elsewhere`,
    );
  }
  const names = queues.map((other) => printable(other.name)).join(', ');
  throw new CommandError(`${folder}: there are several queues; use --queue. Queues: ${names}`);
}
