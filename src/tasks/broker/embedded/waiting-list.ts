import { RowsByMoment } from './rows-by-moment.ts';
import { TaskList } from './task-list.ts';
import type { TaskRow } from './task-row.ts';

/** What waits for its moment: scheduled, or for a retry. The first is the earliest, not the one that has come first. */
export class WaitingList extends TaskList {
  readonly byMoment = new RowsByMoment();

  override get first(): TaskRow | undefined {
    return this.byMoment.first;
  }

  override push(row: TaskRow): void {
    super.push(row);
    this.byMoment.add(row);
  }

  override remove(row: TaskRow): void {
    super.remove(row);
    this.byMoment.remove(row);
  }
}
