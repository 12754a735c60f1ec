import { cleanUp, resizeImage } from '../service/tasks.ts';
import type { DemoResult, Notification, SentImage } from './demo-result.ts';
import { imagesOf } from './images-of.ts';
import { unfinished } from './jobs-client.ts';

/** A notification may have been in its group a moment before it was told of. */
const TOLERANCE_MS = 20;

/** What a run promised and did not keep; empty if all is well. */
export function selfCheck(result: DemoResult): string[] {
  return [
    goodOnesArrive,
    brokenOnesAreArchived,
    refusalsAreRetried,
    digestsAreComplete,
    digestsAreFew,
    oldFilesAreGone,
    nothingIsLeft,
    countsAgree,
  ]
    .map((check) => check(result))
    .filter((complaint) => complaint !== undefined);
}

/** In all sizes, each with the pixels that were asked for. */
function goodOnesArrive({ bursts, widths }: DemoResult): string | undefined {
  const good = imagesOf(bursts).filter(({ isBroken }) => !isBroken);
  if (good.length === 0) return 'no image was sent';
  const undone = good.find(({ job }) => job.state !== 'completed');
  if (undone !== undefined) return `${undone.name} is ${undone.job.state}: ${undone.job.lastError}`;
  const wrong = good.find((image) => shapesOf(image) !== wantedShapes(image, widths));
  if (wrong !== undefined)
    return `${wrong.name} came as ${shapesOf(wrong)}, not ${wantedShapes(wrong, widths)}`;
  const unfinishedOne = good.find(({ job }) => !isFull(job.progress, widths.length));
  return (
    unfinishedOne && `the progress of ${unfinishedOne.name} is ${JSON.stringify(unfinishedOne.job.progress)}`
  );
}

function shapesOf({ received }: SentImage): string {
  return received.map(({ width, height, format }) => `${width}×${height} ${format}`).join(', ');
}

function wantedShapes({ width: from, height }: SentImage, widths: readonly number[]): string {
  return widths.map((width) => `${width}×${Math.round((height * width) / from)} webp`).join(', ');
}

function isFull(progress: unknown, of: number): boolean {
  const { done } = (progress ?? {}) as { done?: unknown };
  return done === of;
}

/** At once: what is no image now, will be none later. */
function brokenOnesAreArchived({ bursts, runs }: DemoResult): string | undefined {
  const broken = imagesOf(bursts).filter(({ isBroken }) => isBroken);
  const kept = broken.find(({ job }) => job.state !== 'archived');
  if (kept !== undefined) return `${kept.name} is no image, and ${kept.job.state}`;
  const again = broken.find(({ id }) => runs.filter(({ taskId }) => taskId === id).length !== 1);
  return again && `${again.name} is no image, and was tried more than once`;
}

/** Each refusal of the storage is one failure, and each failure is one retry. */
function refusalsAreRetried({ runs, bursts, refusals }: DemoResult): string | undefined {
  if (refusals === 0) return 'the storage has refused nothing';
  const good = new Set(imagesOf(bursts).flatMap(({ id, isBroken }) => (isBroken ? [] : [id])));
  const own = runs.filter(({ type, taskId }) => type === resizeImage.type && good.has(taskId));
  const failures = own.filter(({ error }) => error !== undefined).length;
  if (failures !== refusals)
    return `the storage has refused ${refusals} times, and ${failures} runs have failed`;
  const retries = own.filter(({ retryCount }) => retryCount > 0).length;
  return retries === refusals ? undefined : `${refusals} failures were retried ${retries} times`;
}

/** Each image that is ready is in one digest, that of its customer; no other is in any. */
function digestsAreComplete({ bursts, digests }: DemoResult): string | undefined {
  for (const { customer, images } of bursts) {
    for (const { id, name, isBroken } of images) {
      const recipients = digests.flatMap((digest) =>
        digest.images.filter((image) => image.id === id).map(() => digest.recipient),
      );
      const wanted = isBroken ? '' : customer;
      if (recipients.join() !== wanted)
        return `${name} was to be told to '${wanted}', and was to '${recipients.join()}'`;
    }
  }
  return undefined;
}

/** One digest a burst; one more only where a grace period has passed between two notifications. */
function digestsAreFew({ bursts, digests, notifications, graceMs }: DemoResult): string | undefined {
  for (const { customer, images } of bursts) {
    const ids = new Set(images.map(({ id }) => id));
    const own = digests.filter((digest) => digest.images.some(({ id }) => ids.has(id))).length;
    const allowed =
      1 +
      pauses(
        notifications.filter(({ imageId }) => ids.has(imageId)),
        graceMs,
      );
    if (own > allowed) return `a burst of ${customer} made ${own} digests, not ${allowed}`;
  }
  return undefined;
}

function pauses(notifications: readonly Notification[], graceMs: number): number {
  const timesMs = notifications.map(({ atMs }) => atMs);
  return timesMs.filter((ms, index) => ms - (timesMs[index - 1] ?? ms) > graceMs - TOLERANCE_MS).length;
}

function oldFilesAreGone({ oldFilesLeft, runs }: DemoResult): string | undefined {
  if (oldFilesLeft > 0) return `${oldFilesLeft} old files were not removed`;
  return runs.some(({ type }) => type === cleanUp.type) ? undefined : 'nobody has cleaned up';
}

function nothingIsLeft({ queues }: DemoResult): string | undefined {
  const busy = queues.find((queue) => unfinished(queue) > 0);
  return busy && `the queue ${busy.queue} still has ${unfinished(busy)} tasks to do`;
}

/** What the administration counts is what was sent. */
function countsAgree({ queues, bursts }: DemoResult): string | undefined {
  const counts = queues.find(({ queue }) => queue === 'images');
  const images = imagesOf(bursts);
  const broken = images.filter(({ isBroken }) => isBroken).length;
  if (counts === undefined) return 'the administration shows no images';
  if (counts.archived === broken && counts.completed === images.length - broken) return undefined;
  return `the administration shows ${counts.completed} images done and ${counts.archived} archived`;
}
