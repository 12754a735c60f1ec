import {
  Client,
  EmbeddedBroker,
  Inspector,
  Scheduler,
  ServeMux,
  Server,
  type RetryDelay,
} from 'escapement/tasks';
import { tasksHandler } from 'escapement/tasks/http';
import { HttpService } from './http-service.ts';
import { ImageJobs } from './image-jobs.ts';
import type { ImageStore } from './image-store.ts';
import { digestSender, makeDigest } from './notifications.ts';
import { resizer } from './resizer.ts';
import { logged, type RunLine } from './run-log.ts';
import { cleanUp, QUEUES, resizeImage, sendDigest, type Digest } from './tasks.ts';

export interface JobsServiceOptions {
  readonly store: ImageStore;
  /** 0: a free one. */
  readonly port: number;
  /** Images in work at once. */
  readonly workers: number;
  /** Of an image that is sent. */
  readonly maxBytes: number;
  readonly retryDelayMs: RetryDelay;
  /** How long a digest waits for one more notification. */
  readonly graceMs: number;
  /** When old files are removed, as a scheduler reads it. */
  readonly cleanUpSpec: string;
  /** How old a file is then. */
  readonly keepMs: number;
  readonly tell: (line: RunLine) => void;
  readonly send: (digest: Digest) => void;
}

/** All of it, in one process: who takes jobs, who does them, and who cleans up. */
export class JobsService {
  readonly client: Client;
  /** What knows of the jobs: it is gone with the process. */
  readonly #broker: EmbeddedBroker;
  readonly #options: JobsServiceOptions;
  readonly #server: Server;
  readonly #scheduler: Scheduler;
  readonly #inspector: Inspector;
  readonly #http: HttpService;
  #closing: Promise<number> | undefined;

  private constructor(broker: EmbeddedBroker, options: JobsServiceOptions) {
    const { workers, retryDelayMs, graceMs, store, maxBytes } = options;
    this.#broker = broker;
    this.#options = options;
    this.client = new Client({ broker });
    this.#inspector = new Inspector({ broker });
    this.#scheduler = new Scheduler({ broker });
    this.#server = new Server({
      ...{ broker, queues: QUEUES, concurrency: workers, retryDelayMs },
      groupAggregator: makeDigest,
      groupGracePeriodMs: graceMs,
    });
    const admin = tasksHandler({ broker, rootPath: '/admin', readOnly: true });
    this.#http = new HttpService(new ImageJobs(store, this.client, this.#inspector), admin, maxBytes);
  }

  /** @returns the service, and its address. */
  static async start(options: JobsServiceOptions): Promise<{ service: JobsService; url: string }> {
    const service = new JobsService(await EmbeddedBroker.open(), options);
    try {
      return { service, url: await service.#start() };
    } catch (error) {
      await service.close();
      throw error;
    }
  }

  /** Takes no more jobs, and waits for those in work. Idempotent. @returns how many tasks are left, and lost. */
  close(): Promise<number> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<number> {
    await Promise.all([this.#http.close(), this.#inspector.close(), this.#scheduler.shutdown()]);
    await this.#server.shutdown();
    await this.client.close();
    const left = await this.#unfinished();
    await this.#broker.close();
    return left;
  }

  async #start(): Promise<string> {
    const { store, tell, send, cleanUpSpec, keepMs, port } = this.#options;
    await store.prepare();
    const mux = new ServeMux()
      .use(logged(tell))
      .handle(resizeImage, resizer(store, this.client))
      .handle(sendDigest, digestSender(send))
      .handle(cleanUp, async ({ data }, context) => {
        await context.writeResult({ removed: await store.removeOlderThan(data.keepMs, context.signal) });
      });
    await this.#server.start(mux);
    this.#scheduler.register(cleanUpSpec, cleanUp.task({ keepMs }));
    await this.#scheduler.start();
    return this.#http.listen(port);
  }

  async #unfinished(): Promise<number> {
    const queues = await this.#inspector.queues();
    const infos = await Promise.all(queues.map((queue) => this.#inspector.getQueueInfo(queue)));
    return infos.reduce((sum, { size, completed, archived }) => sum + size - completed - archived, 0);
  }
}
