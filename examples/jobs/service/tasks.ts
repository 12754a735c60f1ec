import { defineTask } from 'escapement/tasks';
import { z } from 'zod';

/** The queues of the service, with their priorities. */
export const QUEUES = { images: 3, notifications: 2, upkeep: 1 };

/** How long a finished job can be asked about. */
const RETENTION_MS = 3_600_000;

const recipient = z.string().regex(/^[\w.@-]{1,64}$/);
const imageId = z.uuid();

/** A size of an image, as it was stored. */
export const storedSize = z.object({ width: z.int(), height: z.int(), bytes: z.int() });
export type StoredSize = z.infer<typeof storedSize>;

/** What a finished job has to show. */
export const resizeResult = z.object({ sizes: z.array(storedSize) });

/** Makes the sizes of an image. The task's id is that of the image, so its original is found by it. */
export const resizeImage = defineTask('image:resize', {
  schema: z.object({
    widths: z.array(z.int().min(16).max(4_096)).min(1).max(5),
    notify: recipient,
  }),
  queue: 'images',
  maxRetry: 5,
  timeoutMs: 60_000,
  retentionMs: RETENTION_MS,
});

/** Says that an image is ready. It waits in a group, that of who is notified, and becomes part of a digest. */
export const imageReady = defineTask('image:ready', {
  schema: z.object({ id: imageId, sizes: z.int() }),
  queue: 'notifications',
});

/** Sends one message about many images. */
export const sendDigest = defineTask('digest:send', {
  schema: z.object({ recipient, images: z.array(z.object({ id: imageId, sizes: z.int() })) }),
  queue: 'notifications',
  timeoutMs: 10_000,
});
export type Digest = Awaited<ReturnType<typeof sendDigest.parse>>;

/** Removes old files. One that fails is not tried again: the next comes soon. */
export const cleanUp = defineTask('files:clean-up', {
  schema: z.object({ keepMs: z.number().positive() }),
  queue: 'upkeep',
  maxRetry: 0,
  timeoutMs: 60_000,
  retentionMs: RETENTION_MS,
});
