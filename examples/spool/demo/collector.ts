import { open, type FileHandle } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface CollectorOptions {
  readonly file: string;
  /** 0: a free one. */
  readonly port: number;
  /** Every so many requests one is answered 503, as by a server that has too much to do. */
  readonly overloadedEvery: number;
}

/** A server that takes lines, and answers when they are on its disk. */
export class Collector {
  readonly #options: CollectorOptions;
  readonly #http = createServer((request, response) => void this.#handle(request, response));
  #file: FileHandle | undefined;
  /** One append at a time. */
  #appended: Promise<void> = Promise.resolve();
  #requests = 0;

  constructor(options: CollectorOptions) {
    this.#options = options;
    // A connection that waits for its next request is closed by whoever opened it, or in close().
    this.#http.keepAliveTimeout = 0;
  }

  /** @returns the port. */
  async listen(): Promise<number> {
    const { file, port } = this.#options;
    await cutHalfLine(file);
    this.#file = await open(file, 'a');
    await new Promise<void>((resolve, reject) => {
      this.#http.once('error', reject);
      this.#http.listen(port, '127.0.0.1', resolve);
    });
    return (this.#http.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    await new Promise((resolve) => this.#http.close(resolve));
    await this.#file?.close();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      response.writeHead(await this.#take(request)).end();
    } catch {
      response.destroy(); // the client is gone, or the disk has refused: it is not to think that we have it
    }
  }

  async #take(request: IncomingMessage): Promise<number> {
    const body = await text(request);
    if (++this.#requests % this.#options.overloadedEvery === 0) return 503;
    const source = `collector=${process.pid} shipper=${/pid (\d+)/.exec(request.headers['user-agent'] ?? '')?.[1] ?? '?'}`;
    const lines = body.split('\n').slice(0, -1);
    const append = this.#appended.then(() =>
      this.#append(lines.map((line) => `${source} ${line}\n`).join('')),
    );
    this.#appended = append.catch(() => undefined);
    await append;
    return 204;
  }

  async #append(lines: string): Promise<void> {
    await this.#file?.appendFile(lines);
    await this.#file?.datasync();
  }
}

/** What was being written when a collector was killed. It has answered for none of it. */
async function cutHalfLine(path: string): Promise<void> {
  const file = await open(path, 'a+');
  const bytes = await file.readFile();
  await file.truncate(bytes.lastIndexOf('\n') + 1);
  await file.close();
}
