/** go-diskqueue, or this library used as it is: the owner of the files of the queue `q` until it is closed. */
export interface Original {
  put(message: Uint8Array): Promise<void>;
  /** The next message, which is consumed then; undefined if there is none. */
  receive(): Promise<Buffer | undefined>;
  depth(): Promise<number>;
  empty(): Promise<void>;
  close(): Promise<void>;
}

export type OpenOriginal = (folder: string, maxBytesPerFile: number) => Promise<Original>;

/** Of a message, in bytes: as the original is told. */
export const LARGEST_MESSAGE = 1024 * 1024;
