import { EscapementError } from 'escapement';
import { Task, type Client, type Server } from 'escapement/tasks';

const codeOf = (error: unknown): string | undefined =>
  error instanceof EscapementError ? error.code : undefined;

/** With an id it can be tried until it is known to be there. */
export async function enqueueSurely(client: Client, taskId: string, key?: string): Promise<void> {
  for (;;) {
    try {
      await client.enqueue(new Task('work', taskId), { taskId, key, retentionMs: 86_400_000 });
      return;
    } catch (error) {
      if (codeOf(error) === 'ERR_TASK_ID_CONFLICT') return;
      if (codeOf(error) !== 'ERR_BROKER_UNAVAILABLE') throw error;
    }
  }
}

export async function startSurely(server: Server, handler: () => void): Promise<void> {
  for (;;) {
    try {
      await server.start(handler);
      return;
    } catch (error) {
      if (codeOf(error) !== 'ERR_BROKER_UNAVAILABLE') throw error;
    }
  }
}
