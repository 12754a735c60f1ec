import type { JSX } from 'preact';
import { rate } from './format.ts';
import type { Figure } from './parts.tsx';
import type { Rates } from './recent.ts';

/** A line of values, the oldest left, in the size that its text has; `label` for those who do not see it. */
export function Sparkline(props: {
  readonly values: readonly number[];
  readonly label: string;
  readonly tone?: 'accent' | 'bad';
  readonly width?: number;
  readonly height?: number;
  /** Values that are drawn, if there are so many; the line grows from the right. */
  readonly most?: number;
}): JSX.Element {
  const { values, label, tone = 'accent', width = 96, height = 22, most = 60 } = props;
  const known = values.slice(-most);
  const top = Math.max(...known, 1e-9);
  const step = width / (most - 1);
  const left = width - (known.length - 1) * step;
  const points = known.map((value, index) => {
    const y = height - 1.5 - (value / top) * (height - 4);
    return `${(left + index * step).toFixed(1)} ${y.toFixed(1)}`;
  });
  const isFlat = known.every((value) => value === 0);
  return (
    <svg
      class={`sparkline ${isFlat ? 'muted' : tone}`}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {points.length > 1 && (
        <>
          <path class="area" d={`M${left.toFixed(1)} ${height}L${points.join('L')}L${width} ${height}Z`} />
          <path class="line" d={`M${points.join('L')}`} vector-effect="non-scaling-stroke" />
        </>
      )}
      {points.length <= 1 && <path class="line" d={`M0 ${height - 1.5}H${width}`} opacity="0.3" />}
    </svg>
  );
}

/** The rates of a queue, or of all, now and in the last minute. */
export function rateFigures(
  recent: Rates,
  processedPerS: number | undefined,
  failedPerS: number | undefined,
  href?: string,
): readonly Figure[] {
  const processed = <Sparkline values={recent.processed} label="processed in the last minute" />;
  const failed = <Sparkline values={recent.failed} tone="bad" label="failed in the last minute" />;
  const tone = (failedPerS ?? 0) > 0 ? 'bad' : 'plain';
  return [
    ['Processed', rate(processedPerS), undefined, { unit: '/s', href, picture: processed }],
    ['Failed', rate(failedPerS), undefined, { unit: '/s', href, tone, picture: failed }],
  ];
}
