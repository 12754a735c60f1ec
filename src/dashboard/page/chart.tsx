import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { compact, durationText } from './format.ts';

/** A chart over time by uPlot; this module is loaded when the first chart is shown. */

interface Line {
  readonly label: string;
  readonly values: readonly number[];
  /** Name of a custom property of the style sheet. */
  readonly colour: string;
  readonly isFilled?: boolean;
}

export interface ChartProps {
  readonly label: string;
  readonly atMs: readonly number[];
  readonly lines: readonly Line[];
  readonly unit: 'perS' | 'tasks' | 'ms';
}

const HEIGHT = 190;

export function Chart({ label, atMs, lines, unit }: ChartProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  const shape = lines.map((line) => line.label).join();
  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new UPlot(optionsOf(element, lines, unit), dataOf(atMs, lines), element);
      showLatest(plot.current);
    };
    draw();
    const resized = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT });
      showLatest(plot.current);
    });
    resized.observe(element);
    // Colours are read from the style sheet, which changes with the theme.
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    addEventListener('themechange', draw);
    return () => {
      resized.disconnect();
      dark.removeEventListener('change', draw);
      removeEventListener('themechange', draw);
      plot.current?.destroy();
    };
  }, [shape, unit]);
  useEffect(() => {
    plot.current?.setData(dataOf(atMs, lines));
    showLatest(plot.current);
  });
  const last = lines
    .map(({ label: name, values }) => `${name} ${write(values.at(-1) ?? 0, unit)}`)
    .join(', ');
  return <div ref={host} class="chart" role="img" aria-label={`${label}. Now: ${last}`} />;
}

/** Without a pointer on the chart, its legend has the latest values. */
function showLatest(plot: UPlot | undefined): void {
  if (plot?.cursor.idx == null) plot?.setLegend({ idx: plot.data[0].length - 1 });
}

function dataOf(atMs: readonly number[], lines: readonly Line[]): UPlot.AlignedData {
  return [atMs.map((ms) => ms / 1_000), ...lines.map(({ values }) => [...values])];
}

function write(value: number, unit: ChartProps['unit']): string {
  if (unit === 'ms') return durationText(value);
  const text = value > 0 && value < 10 ? String(Number(value.toFixed(2))) : compact(Math.round(value));
  return unit === 'perS' ? `${text}/s` : text;
}

function optionsOf(element: HTMLElement, lines: readonly Line[], unit: ChartProps['unit']): UPlot.Options {
  const colour = (name: string): string => resolved(element, `var(${name})`);
  const axis: UPlot.Axis = {
    stroke: colour('--muted'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { live: true },
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [
      { ...axis, space: 70, values: TIME_AXIS, incrs: TIMES },
      {
        ...{ ...axis, size: 78, values: (_plot, values) => values.map((value) => write(value, unit)) },
        ...(unit === 'ms' && { incrs: DURATIONS }),
      },
    ],
    series: [
      { label: 'Time', value: '{HH}:{mm}:{ss}' },
      ...lines.map((line): UPlot.Series => ({
        label: line.label,
        stroke: colour(line.colour),
        width: 1.6,
        ...(line.isFilled === true
          ? { fill: resolved(element, `color-mix(in srgb, var(${line.colour}) 13%, transparent)`) }
          : {}),
        points: { show: false },
        value: (_plot, value: number | null) => (value === null ? '–' : write(value, unit)),
      })),
    ],
  };
}

/** What a colour of the style sheet is in the present theme: a canvas takes no `var()`. */
function resolved(element: HTMLElement, colour: string): string {
  const probe = element.appendChild(document.createElement('i'));
  probe.style.color = colour;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Hours and minutes as most of the world writes them; uPlot's own are American. Columns: from which step, and the text. */
const TIME_AXIS: UPlot.Axis.Values = [
  [3600, '{HH}:{mm}', '\n{DD}.{MM}.', null, '\n{DD}.{MM}.', null, null, null, 1],
  [60, '{HH}:{mm}', null, null, null, null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', null, null, null, null, null, null, 1],
];

/** Steps of an axis of durations, in milliseconds: whole seconds, minutes, hours and days. An axis of time has seconds. */
const DURATIONS: number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 20e3, 30e3, 60e3, 120e3, 300e3, 600e3],
  ...[20, 30, 60, 120, 360, 720, 1_440, 2_880, 7_200, 14_400, 28_800].map((minutes) => minutes * 60e3),
];
const TIMES = DURATIONS.filter((ms) => ms >= 1e3).map((ms) => ms / 1e3);
