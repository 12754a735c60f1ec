import { Option, type Command } from 'commander';
import type { DefectKind } from '../../../tasks/broker/broker.ts';
import { EXIT_CODES } from '../../exit-code.ts';
import { printable } from '../../terminal/text.ts';
import { texts } from '../options.ts';
import { does, print, type Run, type Surroundings } from '../run.ts';
import { showTable } from '../show/show-table.ts';

interface RepairWords {
  readonly queue?: readonly string[];
  readonly apply?: boolean;
}

/** What is done to a defect. */
const REPAIRS: Readonly<Record<DefectKind, string>> = {
  'id-without-task': 'taken out of the list',
  'id-in-wrong-list': 'taken out of the list',
  'task-in-no-list': 'put into the list of its state',
  'task-without-message': 'removed',
  'active-without-lease': 'to be recovered by the next server that looks',
  'group-not-listed': 'added to the groups',
  'group-without-tasks': 'removed from the groups',
  'leaked-lock': 'freed',
  'unreadable-message': 'left as it is',
};

/** `escapement tasks repair`. */
export function addRepair(part: Command, surroundings: Surroundings): void {
  const command = part
    .command('repair')
    .description('look for what a crash or a hand has left behind in Redis; changes nothing without --apply')
    .addOption(new Option('-q, --queue <queue...>', 'which ones (default: all)').argParser(texts))
    .addOption(new Option('--apply', 'see to what is found'));
  does(command, surroundings, repair);
}

async function repair(run: Run<RepairWords>): Promise<void> {
  const { queue: queues, apply = false } = run.options;
  const defects = await run.target.repair(queues, apply);
  const left = apply ? defects.filter(({ kind }) => kind === 'unreadable-message') : defects;
  if (left.length > 0) run.terminal.exitCode = EXIT_CODES.problems;
  const head = ['queue', 'what', 'id', 'where', apply ? 'done' : 'with --apply'];
  const rows = defects.map(({ queue, kind, id, where }) => [
    ...[printable(queue), kind, printable(id)],
    ...[printable(where), REPAIRS[kind]],
  ]);
  await print(
    run,
    () => ({ isApplied: apply, defects }),
    () => [defects.length === 0 ? 'nothing is wrong' : showTable([head, ...rows], run.terminal.out)],
  );
}
