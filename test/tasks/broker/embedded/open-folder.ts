import { EmbeddedBroker, type EmbeddedBrokerOptions } from 'escapement/tasks';
import { FILE_SYSTEM, type FileSystem } from '../../../../src/log/file-system.ts';

/**
 * Opens a broker with a folder, by default with small files. Its files may be on another file system; its lock is in the folder of the
 * host. Damage that is reported is an error, unless `onCorruption` is given.
 */
export function openFolder(
  dataPath: string,
  options: EmbeddedBrokerOptions = {},
  files?: FileSystem,
): Promise<EmbeddedBroker> {
  const onCorruption = ({ reason }: { reason: string }): void => {
    throw new Error(`damage was found: ${reason}`);
  };
  const all = { dataPath, maxBytesPerFile: 4_096, onCorruption, ...options };
  return EmbeddedBroker.open({ ...all, ...(files && { [FILE_SYSTEM]: files }) });
}
