import type { Client, GroupAggregator, Handler } from 'escapement/tasks';
import { EscapementError } from 'escapement';
import { imageReady, sendDigest, type Digest } from './tasks.ts';

/** Puts a notification into the group of its recipient, where it waits for others. */
export async function notifyLater(
  client: Client,
  recipient: string,
  image: Digest['images'][number],
): Promise<void> {
  try {
    await client.enqueue(imageReady.task(image, { group: recipient, taskId: `ready:${image.id}` }));
  } catch (error) {
    if (codeOf(error) !== 'ERR_TASK_ID_CONFLICT') throw error; // an earlier run of the job has done it
  }
}

/** Makes one digest of the notifications of a recipient. */
export const makeDigest: GroupAggregator = async (recipient, notifications) => {
  const images = await Promise.all(notifications.map((task) => imageReady.parse(task.json())));
  return sendDigest.task({ recipient, images });
};

/** @param send - where a digest goes: a mail server, if this were not an example. */
export function digestSender(send: (digest: Digest) => void): Handler<Digest> {
  return ({ data }) => {
    send(data);
  };
}

function codeOf(error: unknown): string | undefined {
  return error instanceof EscapementError ? error.code : undefined;
}
