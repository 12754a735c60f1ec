const COUNT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `12,345`. */
export function formatCount(value: number): string {
  return COUNT.format(value);
}

/** Milliseconds: `0.42 ms`, `512 ms`; `–` where there is nothing. */
export function formatMs(value: number): string {
  if (Number.isNaN(value)) return '–';
  return `${Math.abs(value) < 100 ? value.toFixed(2) : formatCount(value)} ms`;
}

/** `9.53 %`. */
export function formatPercent(share: number): string {
  return Number.isNaN(share) ? '–' : `${(share * 100).toFixed(2)} %`;
}

/** `84 MiB`. */
export function formatMebibytes(bytes: number): string {
  return `${formatCount(bytes / 2 ** 20)} MiB`;
}

/** A span as people say it: `1 ms`, `64 ms`, `4.1 s`, `4.4 min`, `4.7 h`. */
export function formatSpan(ms: number): string {
  const units = [
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's'],
  ] as const;
  for (const [size, unit] of units) {
    if (ms >= size) return `${String(Math.round((ms / size) * 10) / 10)} ${unit}`;
  }
  return `${formatCount(ms)} ms`;
}
