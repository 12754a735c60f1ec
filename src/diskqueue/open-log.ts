import { wrongValue } from '../core/errors.ts';
import { CheckedLog } from './checked/checked-log.ts';
import { parseSegmentFileName } from '../log/segment.ts';
import type { ResolvedDiskQueueOptions } from './disk-queue-options.ts';
import type { CorruptionEvent, MessageLog } from './message-log.ts';
import { filesOfQueue } from './nsq/format.ts';
import { NsqLog } from './nsq/nsq-log.ts';

/** Opens the log of a queue in the format of its options. */
export async function openLog(
  options: ResolvedDiskQueueOptions,
  onCorruption: (event: CorruptionEvent) => void,
): Promise<MessageLog> {
  const { files, folder, name, maxBytesPerFile, maxMessageSize, durability, clock, format } = options;
  await requireNoOther(options);
  const isAlwaysDurable = durability === 'always';
  const common = { files, folder, name, maxBytesPerFile, isAlwaysDurable, onCorruption };
  if (format === 'nsq') return NsqLog.open({ ...common, maxMessageSize });
  return CheckedLog.open({ ...common, wallNow: () => clock.wallNow() });
}

/** An empty queue beside the files of the other format would look as if their messages were lost. */
async function requireNoOther({ files, folder, name, format }: ResolvedDiskQueueOptions): Promise<void> {
  const names = await files.list(folder);
  const isChecked = names.some((file) => parseSegmentFileName(file)?.log === name);
  const isNsq = filesOfQueue(name, names).data.length > 0;
  const other = format === 'nsq' ? isChecked && 'checked' : isNsq && 'nsq';
  if (other === false) return;
  throw wrongValue('format', `'${other}', as the files of queue '${name}' in ${folder} are`, format);
}
