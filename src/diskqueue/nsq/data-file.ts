import { dataFileName } from './file-names.ts';

/** What the log knows of one of its files. */
export interface DataFile {
  readonly number: number;
  readonly path: string;
  /** Where its readable records end, in bytes. */
  end: number;
  /** Of these, how many were not handed out yet. */
  unreadRecords: number;
  /** And the bytes of their messages. */
  unreadBytes: number;
  /** Whether something in it cannot be read: then it is put aside instead of deleted. */
  isDamaged: boolean;
}

export function emptyDataFile(folder: string, queue: string, number: number): DataFile {
  const path = `${folder}/${dataFileName(queue, number)}`;
  return { number, path, end: 0, unreadRecords: 0, unreadBytes: 0, isDamaged: false };
}
