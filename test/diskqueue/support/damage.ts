import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openQueue, putAll, temporaryFolder, type Format } from './queues.ts';

const IN_ANOTHER_FILE = 'in another file'.padEnd(230, '.');

/** What is left of a damaged queue: in `nsq` a record is found through the one before it, so the rest of its file is lost. */
export const LEFT = {
  checked: ['before', 'after', IN_ANOTHER_FILE],
  nsq: ['before', IN_ANOTHER_FILE],
};

/** The folder of a queue of which one message is damaged: its bytes, or in `nsq`, which has no checksums, its length. */
export async function damagedFolder(format: Format): Promise<string> {
  const dataPath = temporaryFolder();
  const queue = await openQueue({ format, dataPath, maxBytesPerFile: 256 });
  await putAll(queue, ['before', 'DAMAGED', 'after', IN_ANOTHER_FILE]);
  await queue.close();
  const paths = readdirSync(dataPath).map((name) => join(dataPath, name));
  const path = paths.find((each) => readFileSync(each).includes('DAMAGED')) ?? '';
  const content = readFileSync(path);
  const at = content.indexOf('DAMAGED');
  if (format === 'nsq') content.writeInt32BE(-1, at - 4);
  else content.write('damage', at);
  writeFileSync(path, content);
  return dataPath;
}

/** A file without the zeros at its end. */
export function withoutZeros(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1);
}
