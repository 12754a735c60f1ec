import { randomUUID } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import type { Client, Inspector, TaskInfo } from 'escapement/tasks';
import { EscapementError } from 'escapement';
import type { ImageStore } from './image-store.ts';
import { HttpError } from './http-error.ts';
import { resizeImage } from './tasks.ts';

const QUEUE = 'images';
/** Also keeps paths out of the names of files. */
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** What a client asks for with an image: checked by the schema of the task. */
export interface ResizeRequest {
  readonly widths: number[];
  readonly notify: string;
}

/** What can be done with jobs, without HTTP. */
export class ImageJobs {
  readonly #store: ImageStore;
  readonly #client: Client;
  readonly #inspector: Inspector;

  constructor(store: ImageStore, client: Client, inspector: Inspector) {
    this.#store = store;
    this.#client = client;
    this.#inspector = inspector;
  }

  /** Stores an image and enqueues its job. What is wrong with the request is said before the image is read. */
  async accept(request: ResizeRequest, image: AsyncIterable<Uint8Array>): Promise<string> {
    await resizeImage.parse(request);
    const id = randomUUID();
    await this.#store.addOriginal(id, image);
    try {
      await this.#client.enqueue(resizeImage.task(request, { taskId: id }));
    } catch (error) {
      await this.#store.removeOriginal(id);
      throw error;
    }
    return id;
  }

  job(id: string): Promise<TaskInfo> {
    return this.#inspector.getTaskInfo(QUEUE, requireId(id));
  }

  /** The job when it is over, be it done or archived. */
  async finished(id: string, signal: AbortSignal): Promise<TaskInfo> {
    try {
      return await this.#inspector.waitFor(requireId(id), { queue: QUEUE, signal });
    } catch (error) {
      if (error instanceof EscapementError && error.code === 'ERR_TASK_ARCHIVED') return this.job(id);
      throw error;
    }
  }

  async image(id: string, width: number): Promise<FileHandle> {
    const file = await this.#store.openSize(requireId(id), width);
    if (file === undefined) throw new HttpError(404, `there is no image of that id and width, or not yet`);
    return file;
  }
}

function requireId(id: string): string {
  if (!UUID.test(id)) throw new HttpError(404, 'there is no job of that id');
  return id;
}
