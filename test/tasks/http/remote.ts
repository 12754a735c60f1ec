import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { ManualClock } from 'escapement';
import { Client, type HttpClientOptions } from 'escapement/tasks';
import { tasksHandler, type TasksHandlerOptions } from 'escapement/tasks/http';
import { listen } from '../../listen.ts';
import { openBench, type Bench } from '../support/bench.ts';

export interface RemoteBench extends Omit<Bench, 'client'> {
  readonly url: string;
  /** Enqueues over HTTP, on a clock of its own. */
  readonly client: Client;
  /** That of the client. */
  readonly time: ManualClock;
}

/** More than a test lets its time pass. */
export const LONG_MS = 86_400_000;

/** A client, and the handler that it reaches through a listener, which may answer by itself. */
export async function openRemote(
  options: Partial<HttpClientOptions> = {},
  served: Partial<TasksHandlerOptions> = {},
  through: (handle: () => void, request: IncomingMessage, response: ServerResponse) => void = (handle) => {
    handle();
  },
): Promise<RemoteBench> {
  const bench = await openBench();
  const handler = tasksHandler({ broker: bench.broker, rootPath: '/admin', ...served });
  const port = await listen((request, response) => {
    through(
      () => {
        handler(request, response);
      },
      request,
      response,
    );
  });
  const url = `http://127.0.0.1:${port}/admin`;
  const time = new ManualClock();
  return { ...bench, url, time, client: new Client({ url, clock: time, timeoutMs: LONG_MS, ...options }) };
}

/** A client of a server that answers in its own way. */
export async function openClient(
  listener: RequestListener,
  options: Partial<HttpClientOptions> = {},
): Promise<Client> {
  return new Client({ url: `http://127.0.0.1:${await listen(listener)}`, maxRetries: 0, ...options });
}

/** Lets the time of the client pass, 100 ms in each turn, until a promise settles. */
export async function passing<T>(time: ManualClock, promise: Promise<T>): Promise<T> {
  const progress = { isSettled: false };
  const end = (): void => {
    progress.isSettled = true;
  };
  promise.then(end, end);
  while (!progress.isSettled) {
    time.advance(100);
    await new Promise(setImmediate);
  }
  return promise;
}
