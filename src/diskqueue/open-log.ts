import { CheckedLog } from './checked/checked-log.ts';
import type { ResolvedDiskQueueOptions } from './disk-queue-options.ts';
import type { CorruptionEvent, MessageLog } from './message-log.ts';
import { NsqLog } from './nsq/nsq-log.ts';

/** The log of a queue, in the format that its options name. */
export function openLog(
  options: ResolvedDiskQueueOptions,
  onCorruption: (event: CorruptionEvent) => void,
): Promise<MessageLog> {
  const { files, folder, name, maxBytesPerFile, maxMessageSize, durability, clock, format } = options;
  const isAlwaysDurable = durability === 'always';
  const common = { files, folder, name, maxBytesPerFile, isAlwaysDurable, onCorruption };
  if (format === 'nsq') return NsqLog.open({ ...common, maxMessageSize });
  return CheckedLog.open({ ...common, wallNow: () => clock.wallNow() });
}
