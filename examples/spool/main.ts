/**
 * A log shipper: lines from standard input wait in a queue on the disk until a collector has them.
 *
 *     npm run example:spool                                                                         shows itself
 *     my-server | npm run -s example:spool -- --spool ./spool --forward https://logs.example/lines  ships your lines
 *
 * Alone it starts a collector that is out of order, and a shipper, which it kills with SIGKILL while a thousand lines are in the spool.
 * The collector recovers, another shipper is started, and you see that every line arrives, in order.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { InvalidArgumentError, Option } from 'commander';
import type { Durability } from 'escapement/diskqueue';
import { command, count, exitCodeOf, integer, number, say, stopSignal } from '../command-line.ts';
import { Shipper } from './shipper.ts';

/** Lines are left for the next start. */
const EXIT_KEPT = 3;

const program = command(
  'example:spool',
  'Ships lines from standard input to a collector, by way of a queue on the disk.',
)
  .option('--spool <directory>', 'folder of the spool; without it, the program shows itself')
  .option('--forward <url>', 'where lines are posted to', httpUrl)
  .addOption(
    new Option('--durability <when>', 'what a stored line survives: the machine, or only the process')
      .choices(['always', 'interval', 'os'])
      .default('always'),
  )
  .option('--max-bytes <number>', 'lines in the spool (65536 to 1e15)', integer(65_536, 1e15), 2 ** 30)
  .option('--batch <number>', 'lines of a request (1 to 10000)', integer(1, 10_000), 500)
  .option('--drain <seconds>', 'forward for so long after the input (0 to 86400)', number(0, 86_400), 30)
  .option('--confirm', 'print how many lines are in the spool, each time there are more', false)
  .parse();
const options = program.opts<{
  spool?: string;
  forward?: string;
  durability: Durability;
  maxBytes: number;
  batch: number;
  drain: number;
  confirm: boolean;
}>();

const { spool, forward } = options;
const stop = stopSignal();
if (spool !== undefined && forward !== undefined) await exitCodeOf(ship(spool, forward), stop);
else if (spool === forward) await exitCodeOf(showItself(), stop);
else program.error('error: --spool and --forward go together');

/** Standard output is for confirmations, so what there is to say goes to standard error. */
async function ship(directory: string, url: string): Promise<void> {
  const shipper = await Shipper.open({
    ...{ directory, url, durability: options.durability, maxBytes: options.maxBytes },
    ...{ batchLines: options.batch, drainMs: 1_000 * options.drain, report: console.error },
    onTaken: (lines) => {
      if (options.confirm) console.log(lines);
    },
  });
  if (shipper.depth > 0) console.error(`${count(shipper.depth)} lines are in the spool from the last time`);
  await shipper.run(process.stdin, stop);
  console.error(`forwarded ${count(shipper.forwarded)} lines; ${count(shipper.depth)} are left in the spool`);
  if (shipper.depth > 0) process.exitCode = EXIT_KEPT;
}

async function showItself(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'escapement-spool-'));
  const arrived: string[] = [];
  let isInOrder = false;
  const collector = createServer((request, response) => {
    void text(request).then((lines) => {
      if (isInOrder) arrived.push(...lines.trimEnd().split('\n'));
      response.writeHead(isInOrder ? 204 : 503).end();
    });
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/`;
  let shipper = startShipper(directory, url);
  try {
    say(`a collector, which answers 503, and a shipper (pid ${shipper.pid})`);
    shipper.stdin.write(linesFrom(1, 1_000));
    await confirmed(shipper, 1_000);
    say('1,000 lines are in the spool');
    shipper.kill('SIGKILL');
    await once(shipper, 'exit', { signal: stop });
    say('the shipper is killed with SIGKILL');
    isInOrder = true;
    shipper = startShipper(directory, url);
    say(`the collector is in order again; another shipper starts (pid ${shipper.pid})`);
    shipper.stdin.end(linesFrom(1_001, 1_500));
    const [code] = (await once(shipper, 'close', { signal: stop })) as [number];
    const expected = linesFrom(1, 1_500).trimEnd();
    say(`the shipper has ended with ${code}; ${count(arrived.length)} lines have arrived`);
    say(arrived.join('\n') === expected ? 'every line, in order' : 'NOT every line in order, once each');
  } finally {
    shipper.kill('SIGKILL');
    collector.close();
    collector.closeAllConnections();
    await rm(directory, { recursive: true });
  }
}

function linesFrom(first: number, last: number): string {
  return Array.from({ length: last - first + 1 }, (_, index) => `line ${first + index}\n`).join('');
}

type ShipperProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** Starts this program, with a spool. What it reports is printed. */
function startShipper(directory: string, url: string): ShipperProcess {
  const args = [...process.execArgv, fileURLToPath(import.meta.url)];
  const shipping = ['--spool', directory, '--forward', url, '--confirm'];
  const shipper = spawn(process.execPath, [...args, ...shipping], { stdio: 'pipe' });
  createInterface(shipper.stderr).on('line', (line) => {
    say(`   shipper ${shipper.pid}: ${line}`);
  });
  shipper.stdin.on('error', () => undefined); // it was killed
  return shipper;
}

async function confirmed(shipper: ShipperProcess, lines: number): Promise<void> {
  const input = createInterface({ input: shipper.stdout, signal: stop });
  for await (const line of input) if (Number(line) >= lines) return;
  throw new Error('the shipper ended early');
}

function httpUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new InvalidArgumentError('It must be a URL with http or https.');
}
