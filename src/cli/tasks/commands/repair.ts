import { examineQueue, reportOf, type ExaminedQueue } from '../../../diskqueue/checked/examine-queue.ts';
import { planRepair } from '../../../diskqueue/checked/plan-repair.ts';
import { StoredCheckedQueue } from '../../../diskqueue/checked/stored-checked-queue.ts';
import {
  untilNothingIsRemoved,
  type OnProgress,
  type RepairPlan,
  type VerifyReport,
} from '../../../diskqueue/stored/stored-queue.ts';
import { hostFileSystem } from '../../../log/file-system.ts';
import type { CorruptionEvent } from '../../../log/segment.ts';
import type { Defect, DefectKind } from '../../../tasks/broker/broker.ts';
import { LOG_NAME } from '../../../tasks/broker/embedded/durable-store.ts';
import { EmbeddedBroker, FOR_READING } from '../../../tasks/broker/embedded/embedded-broker.ts';
import { ENTRIES } from '../../../tasks/broker/embedded/journal-format.ts';
import { countTasks } from '../../../tasks/info.ts';
import { CommandError } from '../../command-error.ts';
import { renderRepair, repairOne } from '../../diskqueue/repair.ts';
import { renderVerify, verifyOne } from '../../diskqueue/verify.ts';
import { texts } from '../../options.ts';
import { endWith, EXIT_CODES } from '../../terminal/terminal.ts';
import { counted, formatBytes, type Columns } from '../../terminal/text.ts';
import { requireIdle, requireTasks } from '../connect.ts';
import { folderConnection, type ConnectionOptions } from '../connection.ts';
import {
  print,
  tableOf,
  withTarget,
  type Invocation,
  type Report,
  type Run,
  type TasksCommand,
} from '../run.ts';

const VERIFY_HELP = `
Reads every byte of a folder (--path), checks that every record is one of a
broker, and changes nothing. Of each problem it shows the file, the offset, the
bytes and the reason. What a crash may leave is a note.

Exit codes: 0 clean; 1 problems found; 2 wrong usage, or something cannot be
read.`;

const REPAIR_HELP = `
Redis: finds what a crash or a manual change left. A folder (--path): completes
what a crash interrupted, and replaces damaged files by files with all of their
intact records; a damaged file is kept as FILE.damaged. Nothing changes without
--apply.

Exit codes: 0 all is in order, or is now; 1 something is left to repair, or
records of a folder are lost for good; 2 wrong usage, or not done.`;

interface RepairOptions extends ConnectionOptions {
  readonly queue?: readonly string[];
  readonly apply?: boolean;
}

export function addRepair(part: TasksCommand): void {
  part
    .command('verify')
    .description('read every byte of a folder (--path), and report damage')
    .addHelpText('after', VERIFY_HELP)
    .calls(verifyFolder);
  part
    .command('repair')
    .description('find what a crash or a manual change left, or damage; changes nothing without --apply')
    .option('-q, --queue <queue...>', 'the queues of Redis [default: all]', texts)
    .option('--apply', 'repair it')
    .addHelpText('after', REPAIR_HELP)
    .calls<RepairOptions>((call) =>
      call.options.path === undefined ? withTarget(call, 'change', repairBroker) : repairFolder(call),
    );
}

async function verifyFolder(call: Invocation<ConnectionOptions>): Promise<void> {
  const { terminal, options } = call;
  if (options.path === undefined) throw new CommandError('verify needs --path: a folder');
  const { name: path } = folderConnection(options.path, options);
  await requireTasks(path);
  const verified = await verifyOne<TasksReport>(new StoredTasks(path), terminal);
  const { isOpen, tasks, queues, messages: records, bytes, problems, notes } = verified;
  const sizes = `${counted(tasks, 'task')} in ${counted(queues, 'queue')}, ${counted(records, 'record')}, ${formatBytes(bytes)}`;
  if (problems.length > 0) endWith(terminal, EXIT_CODES.problems);
  await print(call, {
    json: () => ({
      ...{ folder: path, isClean: problems.length === 0, isOpen, tasks, queues, records, bytes },
      ...{ problems, notes },
    }),
    lines: () => renderVerify(verified, sizes, 'record', terminal),
  });
}

async function repairFolder(call: Invocation<RepairOptions>): Promise<void> {
  const { terminal, options } = call;
  const { apply = false, queue } = options;
  const { name: path } = folderConnection(options.path ?? '', options);
  if (queue !== undefined) throw new CommandError('--path and --queue cannot be used together');
  await requireTasks(path);
  await requireIdle(path);
  const repaired = await repairOne(new StoredTasks(path), path, !apply, terminal);
  const { steps, lost } = repaired;
  if (lost.length > 0 || (steps.length > 0 && !apply)) endWith(terminal, EXIT_CODES.problems);
  await print(call, {
    json: () => ({ folder: path, isApplied: apply, steps, lost }),
    lines: () => renderRepair(repaired, !apply, 'record', terminal),
  });
}

const REPAIRS: Readonly<Record<DefectKind, string>> = {
  'id-without-task': 'removed from the list',
  'id-in-wrong-list': 'removed from the list',
  'task-in-no-list': 'added to the list of its state',
  'task-without-message': 'removed',
  'active-without-lease': 'recovered by the next server',
  'group-not-listed': 'added to the groups',
  'group-without-tasks': 'removed from the groups',
  'leaked-lock': 'freed',
  'wrong-count': 'corrected',
  'unreadable-message': 'left unchanged',
};

async function repairBroker(run: Run<RepairOptions>): Promise<Report> {
  const { queue: queues, apply = false } = run.options;
  const defects = await run.target.repair({ queues, apply });
  const left = apply ? defects.filter(({ kind }) => kind === 'unreadable-message') : defects;
  if (left.length > 0) endWith(run.terminal, EXIT_CODES.problems);
  const columns: Columns<Defect> = [
    ['queue', ({ queue }) => queue],
    ['what', ({ kind }) => kind],
    ['id', ({ id }) => id],
    ['where', ({ where }) => where],
    [apply ? 'done' : 'with --apply', ({ kind }) => REPAIRS[kind]],
  ];
  return {
    json: () => ({ isApplied: apply, defects }),
    lines: () => [defects.length === 0 ? 'no defects' : tableOf(run, columns, defects)],
  };
}

/** What the folder of a broker holds. */
interface TasksReport extends VerifyReport {
  /** Number of tasks and queues that the next broker finds. */
  readonly tasks: number;
  readonly queues: number;
}

/** The log of an embedded broker as it is on the disk: as that of a disk queue, without acknowledgements. */
class StoredTasks extends StoredCheckedQueue {
  /** @param folder - without a separator at its end. */
  constructor(folder: string) {
    super(hostFileSystem, folder, LOG_NAME);
  }

  override verify(onProgress: OnProgress): Promise<TasksReport> {
    return untilNothingIsRemoved(() => this.#verify(onProgress));
  }

  async #verify(onProgress: OnProgress): Promise<TasksReport> {
    const { messages, unacknowledged, problems, notes } = reportOf(await this.#examine(onProgress));
    const events: CorruptionEvent[] = [];
    const counts = await this.#count((event) => events.push(event));
    // The others are records that are intact, and not entries of a broker.
    const found = new Set(problems.map(placeOf));
    const illegal = events.filter((event) => !found.has(placeOf(event)));
    for (const { file } of illegal) await this.files.size(file); // throws if its owner has removed it meanwhile
    const bytes = await this.size();
    return { messages, unacknowledged, notes, bytes, ...counts, problems: [...problems, ...illegal] };
  }

  override async planRepair(onProgress: OnProgress): Promise<RepairPlan> {
    const { steps, lost } = planRepair(this.files, await this.#examine(onProgress), false);
    return { steps, lost: lost.map((loss) => ({ ...loss, messages: undefined })) };
  }

  #examine(onProgress: OnProgress): Promise<ExaminedQueue> {
    return examineQueue(this.files, this.folder, this.name, onProgress, ENTRIES);
  }

  async #count(onCorruption: (event: CorruptionEvent) => void): Promise<{ tasks: number; queues: number }> {
    const options = { dataPath: this.folder, onCorruption, [FOR_READING]: true };
    const broker = await EmbeddedBroker.open(options);
    try {
      return await countTasks(broker);
    } finally {
      await broker.close();
    }
  }
}

function placeOf({ file, offset }: CorruptionEvent): string {
  return `${file} at ${offset}`;
}
