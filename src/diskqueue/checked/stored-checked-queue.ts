import { recoverSegments } from '../../log/recover-segments.ts';
import { SegmentReader } from '../../log/segment-reader.ts';
import { DATA, parseSegmentFileName, type Segment } from '../../log/segment.ts';
import type { AckRanges } from '../ack-ranges.ts';
import {
  StoredQueue,
  untilNothingIsRemoved,
  type ListedMessage,
  type MessageSelection,
  type OnProgress,
  type QueueSummary,
  type RepairPlan,
  type VerifyReport,
} from '../stored/stored-queue.ts';
import { CursorFile, cursorFileNames } from './cursor-file.ts';
import { firstExpected } from './cursor-format.ts';
import { examineQueue, reportOf } from './examine-queue.ts';
import { planRepair } from './plan-repair.ts';

/** A queue of the default format, as it is stored on the disk. */
export class StoredCheckedQueue extends StoredQueue {
  readonly format = 'checked';

  async summarize(): Promise<QueueSummary> {
    const { acks, segments } = await this.#recover();
    return {
      files: segments.map(({ path }) => path.slice(this.folder.length + 1)),
      messages: segments.reduce((sum, { base, next }) => sum + next - base, 0),
      unacknowledged: segments.reduce((sum, { base, next }) => sum + unacknowledgedIn(acks, base, next), 0),
      bytes: await this.size(),
    };
  }

  async verify(onProgress: OnProgress): Promise<VerifyReport> {
    const examined = await untilNothingIsRemoved(() =>
      examineQueue(this.files, this.folder, this.name, onProgress),
    );
    return { ...reportOf(examined), bytes: await this.size() };
  }

  async *messages({ isAll, from, onDamage }: MessageSelection): AsyncIterable<ListedMessage> {
    const { acks, segments } = await this.#recover();
    const first = isAll ? from : Math.max(from, acks.prefix);
    for (const segment of segments) {
      if (segment.next <= first) continue;
      for await (const message of this.#messagesOf(segment, acks, onDamage)) {
        if (message.sequence >= first && (isAll || !message.isAcknowledged)) yield message;
      }
    }
  }

  async planRepair(onProgress: OnProgress): Promise<RepairPlan> {
    return planRepair(this.files, await examineQueue(this.files, this.folder, this.name, onProgress));
  }

  async *#messagesOf(
    segment: Segment,
    acks: AckRanges,
    onDamage: MessageSelection['onDamage'],
  ): AsyncIterable<ListedMessage> {
    if (segment.header === undefined) onDamage(segment.path, 0);
    const reader = await SegmentReader.open(this.files, segment);
    if (segment.isRemoved === true) return; // its owner has removed it, because all of it is acknowledged
    for await (const pieces of reader) {
      for (const piece of pieces) {
        if (piece.kind === 'damage') onDamage(segment.path, piece.offset);
        if (piece.kind !== 'record') continue;
        const { sequence, payload } = piece;
        yield { sequence, isAcknowledged: acks.has(sequence), data: Buffer.from(payload) };
      }
    }
  }

  #recover(): Promise<{ acks: AckRanges; segments: readonly Segment[] }> {
    return untilNothingIsRemoved(async () => {
      const { files, folder, name } = this;
      const cursor = await new CursorFile(files, folder, name).load();
      const { segments } = await recoverSegments(files, folder, name, DATA, firstExpected(cursor));
      return { acks: cursor.acks, segments };
    });
  }

  protected override owns(file: string): boolean {
    return cursorFileNames(this.name).includes(file) || parseSegmentFileName(file)?.log === this.name;
  }
}

/** Counts the messages `from` up to `to` that are not acknowledged. */
function unacknowledgedIn({ prefix, ranges }: AckRanges, from: number, to: number): number {
  const start = Math.max(from, prefix);
  const overlaps = ranges.map((range) => Math.min(range.to, to) - Math.max(range.from, start));
  return overlaps.reduce((left, overlap) => left - Math.max(overlap, 0), Math.max(to - start, 0));
}
