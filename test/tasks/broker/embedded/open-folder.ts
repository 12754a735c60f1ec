import { EmbeddedBroker, type EmbeddedBrokerOptions } from 'escapement/tasks';
import { checkBrokerLog } from 'escapement/testing';
import { onTestFinished } from 'vitest';
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

/** The same for the length of the test: then its log is checked, and it is closed. */
export async function openForTest(
  dataPath: string,
  options?: EmbeddedBrokerOptions,
  files?: FileSystem,
): Promise<EmbeddedBroker> {
  const broker = await openFolder(dataPath, options, files);
  onTestFinished(async () => {
    await checkBrokerLog(broker);
    await broker.close();
  });
  return broker;
}
