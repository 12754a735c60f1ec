import { examineQueue, reportOf } from '../../diskqueue/checked/examine-queue.ts';
import { planRepair } from '../../diskqueue/checked/plan-repair.ts';
import { StoredCheckedQueue } from '../../diskqueue/checked/stored-checked-queue.ts';
import {
  untilNothingIsRemoved,
  type OnProgress,
  type RepairPlan,
  type VerifyReport,
} from '../../diskqueue/stored/stored-queue.ts';
import { hostFileSystem, withFile } from '../../log/file-system.ts';
import { RECORD_HEADER_BYTES, type CorruptionEvent } from '../../log/segment.ts';
import { EntryCheck, type DamagedTask } from '../../tasks/broker/embedded/check-entries.ts';
import { LOG_NAME } from '../../tasks/broker/embedded/durable-store.ts';
import { EmbeddedBroker, FOR_READING } from '../../tasks/broker/embedded/embedded-broker.ts';
import { countTasks } from '../../tasks/inspector-info.ts';
import { ENTRIES } from '../../tasks/broker/embedded/journal-format.ts';

/** Damage, with the tasks that it is about, as far as they can be read. */
export interface DamageOfTasks extends CorruptionEvent {
  readonly tasks: readonly DamagedTask[];
}

/** What the folder of a broker holds. */
export interface TasksReport extends VerifyReport {
  /** Number of tasks and queues that the next broker finds. */
  readonly tasks: number;
  readonly queues: number;
  readonly problems: readonly DamageOfTasks[];
}

/** The log of an embedded broker as it is on the disk: as that of a disk queue, without acknowledgements. */
export class StoredTasks extends StoredCheckedQueue {
  /** @param folder - without a separator at its end. */
  constructor(folder: string) {
    super(hostFileSystem, folder, LOG_NAME);
  }

  override verify(onProgress: OnProgress): Promise<TasksReport> {
    return untilNothingIsRemoved(() => this.#verify(onProgress));
  }

  async #verify(onProgress: OnProgress): Promise<TasksReport> {
    const entries = new EntryCheck();
    const illegal: CorruptionEvent[] = [];
    const examined = await examineQueue(this.files, this.folder, this.name, onProgress, {
      type: ENTRIES,
      onRecord({ path }, { type, payload, offset, end, sequence }) {
        const reason = entries.check(type, payload);
        const where = { file: path, offset, bytes: end - offset };
        const sequences = { firstSequence: sequence, lastSequence: sequence };
        if (reason !== undefined) illegal.push({ ...where, ...sequences, reason });
      },
    });
    const { messages, unacknowledged, problems, notes } = reportOf(examined);
    const all = [...problems, ...illegal];
    return {
      ...{ messages, unacknowledged, notes, bytes: await this.size(), ...(await this.#count()) },
      problems: await Promise.all(all.map((problem) => this.#withTasks(problem, entries))),
    };
  }

  /** There is no cursor: nothing in a log of tasks is acknowledged. */
  override async planRepair(onProgress: OnProgress): Promise<RepairPlan> {
    const { files, folder, name } = this;
    const examined = await examineQueue(files, folder, name, onProgress, { type: ENTRIES });
    const { steps, lost } = planRepair(files, examined);
    return { steps: steps.filter(({ action }) => action !== 'write cursor'), lost };
  }

  async #count(): Promise<{ tasks: number; queues: number }> {
    const options = { dataPath: this.folder, onCorruption: () => undefined, [FOR_READING]: true };
    const broker = await EmbeddedBroker.open(options);
    try {
      return await countTasks(broker);
    } finally {
      await broker.close();
    }
  }

  async #withTasks(problem: CorruptionEvent, entries: EntryCheck): Promise<DamageOfTasks> {
    const { file, offset, bytes } = problem;
    const damaged = Buffer.alloc(bytes);
    if (bytes > 0) await withFile(this.files, file, 'read', (from) => from.read(damaged, offset));
    return { ...problem, tasks: entries.tasksIn(damaged.subarray(RECORD_HEADER_BYTES)) };
  }
}
