import { formatCount } from '../shared/number-format.ts';
import type { ShipOptions } from './options.ts';
import { Shipper, type Leftovers } from './shipper/shipper.ts';
import { ShipperScreen } from './terminal/shipper-screen.ts';

/** All is well, but not everything is forwarded. */
const EXIT_KEPT = 3;

/** Ships standard input until it ends or the signal fires. @returns the exit code. */
export async function runShipper(options: ShipOptions, signal: AbortSignal): Promise<number> {
  const screen = new ShipperScreen(options.statusMs);
  const shipper = await Shipper.open({ ...options, say: screen.say, onTaken: confirmer(options) });
  const { depth } = shipper.status;
  if (depth > 0) screen.say(`${lines(depth)} in ${options.directory} from the last time`);
  signal.addEventListener('abort', shipper.stop);
  screen.open(() => shipper.status);
  try {
    const leftovers = await shipper.run(process.stdin);
    screen.close();
    tellEnd(leftovers, shipper.status.forwarded, options, screen);
    return leftovers.kept > 0 ? EXIT_KEPT : 0;
  } finally {
    screen.close();
    signal.removeEventListener('abort', shipper.stop);
  }
}

/** Standard output is for who writes into the pipe, and keeps his lines until he knows that they are safe. */
function confirmer({ isConfirming }: ShipOptions): (lines: number) => void {
  return (count) => {
    if (isConfirming) process.stdout.write(`${count}\n`);
  };
}

function tellEnd(
  { kept, leftOut }: Leftovers,
  forwarded: number,
  { directory }: ShipOptions,
  { say }: ShipperScreen,
): void {
  say(
    `forwarded ${lines(forwarded)}; ${kept === 0 ? 'the spool is empty' : `${lines(kept)} stay in ${directory} for the next start`}`,
  );
  if (leftOut > 0) say(`${lines(leftOut)} had been read, and found no room in the spool: they are not in it`);
}

function lines(count: number): string {
  return `${formatCount(count)} ${count === 1 ? 'line' : 'lines'}`;
}
