import type { Burst, SentImage } from './demo-result.ts';

/** The images of all bursts. */
export function imagesOf(bursts: readonly Burst[]): SentImage[] {
  return bursts.flatMap(({ images }) => images);
}
