import { setTimeout as sleep } from 'node:timers/promises';
import { RevokeTask, SkipRetry, type Handler } from '../../../../src/tasks.ts';

/** What a handler says. */
export interface NodeEvent {
  readonly event: 'started' | 'stopped';
  readonly task: string;
  readonly type: string;
  readonly queue: string;
  readonly payload: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly retried: number;
  readonly maxRetry: number;
  readonly deadlineMs: number;
}

/** What the handlers of a process do besides. */
export interface Hands {
  tell(event: NodeEvent): void;
  count(id: string): Promise<unknown>;
}

/** Does what the type of a task says: the same as driver/serve.go. */
export function handlerWith(hands: Hands): Handler {
  return async (task, context) => {
    const { taskId, queue, retryCount, maxRetry, deadlineMs, headers, signal } = context;
    const tell = (event: NodeEvent['event']): void => {
      const payload = Buffer.from(task.payload).toString();
      const said = { event, task: taskId, type: task.type, queue, payload, headers, maxRetry, deadlineMs };
      hands.tell({ ...said, retried: retryCount });
    };
    tell('started');
    switch (task.type) {
      case 'fail':
        throw new Error('boom: ä');
      case 'fail-once':
        if (retryCount === 0) throw new Error('not yet');
        return;
      case 'skip':
        throw new SkipRetry('no more of it');
      case 'revoke':
        throw new RevokeTask('not wanted');
      case 'result':
        await context.writeResult(Buffer.concat([Buffer.from('result of '), task.payload]));
        return;
      case 'progress':
        await context.progress({ percent: 50 });
        throw new Error('half of it');
      case 'hang':
        await new Promise((resolve) => {
          signal.addEventListener('abort', resolve, { once: true });
        });
        tell('stopped');
        throw signal.reason;
      case 'count':
        await sleep(30 * Math.random());
        if (Buffer.from(task.payload).toString() === 'fails once' && retryCount === 0)
          throw new Error('not yet');
        await hands.count(taskId);
    }
  };
}
