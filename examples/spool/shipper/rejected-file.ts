import { open } from 'node:fs/promises';

const NEWLINE = Buffer.from('\n');

/** The lines that the collector refuses, as they came: who has mended it can ship them once more. */
export class RejectedFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** On the disk when it resolves. */
  async add(line: Uint8Array): Promise<void> {
    const file = await open(this.path, 'a');
    try {
      await file.write(Buffer.concat([line, NEWLINE]));
      await file.sync();
    } finally {
      await file.close();
    }
  }
}
