import type { Command } from 'commander';
import type { Terminal } from '../terminal/terminal.ts';
import { addDump } from './dump.ts';
import { addLs } from './ls.ts';
import { addRepair } from './repair.ts';
import { addVerify } from './verify.ts';

/** `escapement diskqueue`: looks at queues on a disk, and puts them in order. */
export function addDiskQueue(program: Command, terminal: Terminal): void {
  const part = program
    .command('diskqueue')
    .description('look at disk queues, and put them in order')
    .addHelpText('after', '\nDIR is the dataPath of the queues. Both formats are found: checked, and nsq.');
  addLs(part, terminal);
  addVerify(part, terminal);
  addDump(part, terminal);
  addRepair(part, terminal);
}
