import { CheckedLog } from './checked/checked-log.ts';
import type { ResolvedDiskQueueOptions } from './disk-queue-options.ts';
import type { CorruptionEvent, MessageLog } from './message-log.ts';

/** The log of a queue, in the format that its options name. */
export function openLog(
  options: ResolvedDiskQueueOptions,
  onCorruption: (event: CorruptionEvent) => void,
): Promise<MessageLog> {
  const { files, folder, name, maxBytesPerFile, durability, clock } = options;
  return CheckedLog.open({
    ...{ files, folder, name, maxBytesPerFile, onCorruption },
    isAlwaysDurable: durability === 'always',
    wallNow: () => clock.wallNow(),
  });
}
