import { SkipRetry, type Client, type Handler } from 'escapement/tasks';
import sharp from 'sharp';
import type { ImageStore } from './image-store.ts';
import { notifyLater } from './notifications.ts';
import { resizeImage, type StoredSize } from './tasks.ts';

type ResizeData = Awaited<ReturnType<typeof resizeImage.parse>>;

/** A small file can be a huge image: what is larger than this is refused before it is decoded. */
const MAX_PIXELS = 50_000_000;

/** Makes the sizes of an image. All of it can be done again: a job runs at least once, not exactly once. */
export function resizer(store: ImageStore, client: Client): Handler<ResizeData> {
  return async ({ data }, context) => {
    const sizes: StoredSize[] = [];
    for (const width of data.widths) {
      context.signal.throwIfAborted(); // it took too long, was cancelled, or the server shuts down
      const { image, height } = await resize(store.originalPath(context.taskId), width);
      await store.putSize(context.taskId, width, image);
      sizes.push({ width, height, bytes: image.length });
      void context.progress({ done: sizes.length, of: data.widths.length });
    }
    await context.writeResult({ sizes });
    await notifyLater(client, data.notify, { id: context.taskId, sizes: sizes.length });
  };
}

/** What sharp cannot read now, it cannot read later: there is no use in trying again. */
async function resize(path: string, width: number): Promise<{ image: Buffer; height: number }> {
  try {
    const resized = sharp(path, { limitInputPixels: MAX_PIXELS }).autoOrient().resize({ width }).webp();
    const { data, info } = await resized.toBuffer({ resolveWithObject: true });
    return { image: data, height: info.height };
  } catch (cause) {
    throw new SkipRetry(`no image: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
