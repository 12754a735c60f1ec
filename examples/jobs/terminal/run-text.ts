import { SkipRetry } from 'escapement/tasks';
import { formatMs } from '../../shared/number-format.ts';
import type { RunLine } from '../service/run-log.ts';
import { resizeImage, type Digest } from '../service/tasks.ts';

/** A run in a line. */
export function runText({ type, taskId, retryCount, durationMs, error }: RunLine): string {
  const name = type === resizeImage.type ? `image ${taskId.slice(0, 8)}` : type;
  if (error === undefined) {
    const tries = retryCount > 0 ? `, at the ${ordinal(retryCount + 1)} try` : '';
    return `${name}: done in ${formatMs(durationMs)}${tries}`;
  }
  const message = error instanceof Error ? error.message : 'an unknown error';
  return `${name}: ${SkipRetry.is(error) ? 'given up' : 'failed'}: ${message.replaceAll(/\s+/g, ' ').trim()}`;
}

export function digestText({ recipient, images }: Digest): string {
  const sizes = images.reduce((sum, image) => sum + image.sizes, 0);
  return `to ${recipient}: ${images.length} ${images.length === 1 ? 'image is' : 'images are'} ready, in ${sizes} sizes`;
}

function ordinal(value: number): string {
  const suffixes: Record<number, string> = { 1: 'st', 2: 'nd', 3: 'rd' };
  return `${value}${suffixes[value] ?? 'th'}`;
}
