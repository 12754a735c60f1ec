import { formatCount, formatMs, formatSpan } from '../../shared/number-format.ts';
import type { ResultRow } from '../../shared/report-table.ts';
import type { DemoResult } from '../demo/demo-result.ts';
import { imagesOf } from '../demo/images-of.ts';
import { cleanUp, resizeImage } from '../service/tasks.ts';

/** The result as the terminal shows it. */
export function resultRows(result: DemoResult): ResultRow[] {
  const images = imagesOf(result.bursts);
  const sizes = images.flatMap(({ job }) => job.sizes);
  const bytes = sizes.reduce((sum, size) => sum + size.bytes, 0);
  const archived = images.filter(({ job }) => job.state === 'archived').length;
  const runs = result.runs.filter(({ type }) => type === resizeImage.type);
  const retries = runs.filter(({ retryCount }) => retryCount > 0).length;
  const durations = runs.filter(({ error }) => error === undefined).map(({ durationMs }) => durationMs);
  return [
    row('images sent', images.length, `in ${result.bursts.length} bursts`),
    row('sizes made', sizes.length, `${formatCount(bytes / 1_024)} KiB, fetched and looked at`),
    row('time of a job', formatMs(mean(durations)), 'on average, for its run that succeeded'),
    row('runs', runs.length, `${retries} of them retries`),
    row('refused by the storage', result.refusals, 'each of them tried again'),
    row('archived', archived, 'no images: tried once'),
    row('notifications', result.notifications.length, 'one for each image that is ready'),
    row('digests', result.digests.length, `each waits ${formatSpan(result.graceMs)} for one more`),
    row('clean-ups', result.runs.filter(({ type }) => type === cleanUp.type).length, 'by the scheduler'),
  ];
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function row(label: string, value: number | string, note: string): ResultRow {
  return { label, value: typeof value === 'number' ? formatCount(value) : value, note };
}
