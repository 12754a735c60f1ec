import type { Delivery, DiskQueue } from 'escapement/diskqueue';

/** How much goes into a request. */
export interface BatchLimits {
  readonly lines: number;
  readonly bytes: number;
  /** How long a batch that is not full waits for more. */
  readonly lingerMs: number;
}

/** Waits for a message, and takes those that come with it. @param signal - ends the waiting: it rejects. */
export async function takeBatch(
  queue: DiskQueue,
  limits: BatchLimits,
  signal: AbortSignal,
): Promise<Delivery[]> {
  const first = await queue.receive({ signal });
  const batch = [first];
  const over = new AbortController();
  const timer = setTimeout(() => {
    over.abort();
  }, limits.lingerMs);
  try {
    for (let bytes = first.data.length; batch.length < limits.lines && bytes < limits.bytes;) {
      const next = await queue.receive({ signal: over.signal });
      bytes += next.data.length;
      batch.push(next);
    }
  } catch (error) {
    if (!over.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
  return batch;
}
