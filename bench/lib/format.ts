/** Numbers and ranges as people read them: three digits that matter, thousands grouped. */
import { summarize } from './statistics.ts';

export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '-∞';
  const magnitude = Math.abs(value);
  const digits = Number.isInteger(value) || magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

/** `131 (125–140)`: the median and the range over the rounds, or the one value there is. */
export function formatSamples(samples: readonly number[]): string {
  if (samples.length === 0) return '–';
  const { median, min, max } = summarize(samples);
  const middle = formatNumber(median);
  const range = `${formatNumber(min)}–${formatNumber(max)}`;
  return samples.length === 1 || range === `${middle}–${middle}` ? middle : `${middle} (${range})`;
}

/** Text as it is written in HTML and SVG. */
export function escapeMarkup(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
