import * as echarts from 'echarts';
import type { EChartsOption } from 'echarts';
import type { LoadSample } from '../server/load-sampler.ts';
import { quantile } from '../quantile.ts';

const WIDTH = 600;
const HEIGHT = 300;
const FONT_SIZE = 13;
const BINS = 40;
/** The axis of lateness ends here: a few stragglers would squeeze the rest into one column. */
const SHOWN_SHARE = 0.995;

/** Colours by name: the page defines them once for light and once for dark. */
const INK = 'var(--ink)';
const FAINT = 'var(--faint)';
const FIRST = 'var(--first)';
const SECOND = 'var(--second)';

/** Nothing in a printed chart answers to the mouse; left alone, shapes under it would turn black. */
const STILL_LINE = { type: 'line', symbol: 'none', silent: true, emphasis: { disabled: true } } as const;

/** How late the timeouts were: a histogram, and the share that was at most so late. */
export function latenessChart(latenessMs: Float64Array): string {
  const endMs = niceCeiling(Math.max(quantile(latenessMs, SHOWN_SHARE) || 0, 1));
  const binMs = endMs / BINS;
  const counts = new Array<number>(BINS).fill(0);
  for (const lateness of latenessMs) {
    const bin = Math.max(Math.floor(lateness / binMs), 0);
    if (bin < BINS) counts[bin] = (counts[bin] ?? 0) + 1;
  }
  const edges = Array.from({ length: BINS + 1 }, (_, index) => index * binMs);
  return render({
    ...frame('ms after the deadline', { max: endMs }),
    yAxis: [axis('value', 'timeouts'), { ...axis('value', '%'), max: 100, splitLine: { show: false } }],
    series: [
      {
        name: 'timeouts',
        ...STILL_LINE,
        step: 'end',
        lineStyle: { color: FIRST, width: 1 },
        itemStyle: { color: FIRST },
        areaStyle: { color: FIRST, opacity: 0.35 },
        data: edges.map((edge, index) => [edge, counts[index] ?? counts[BINS - 1] ?? 0]),
      },
      {
        name: 'at most so late',
        ...STILL_LINE,
        yAxisIndex: 1,
        lineStyle: { color: SECOND, width: 2 },
        itemStyle: { color: SECOND },
        data: edges.map((edge) => [edge, shareUpTo(latenessMs, edge) * 100]),
      },
    ],
  });
}

/** Requests and timers that wait, over time. */
export function pendingChart(samples: readonly LoadSample[]): string {
  const line = (name: string, colour: string, pick: (sample: LoadSample) => number): object => ({
    name,
    ...STILL_LINE,
    lineStyle: { color: colour, width: 2 },
    itemStyle: { color: colour },
    data: samples.map((sample) => [sample.atMs / 1_000, pick(sample)]),
  });
  return render({
    ...frame('seconds since the first request', { max: (samples.at(-1)?.atMs ?? 1_000) / 1_000 }),
    yAxis: axis('value', 'waiting'),
    series: [
      line('timers in the wheels', FIRST, (sample) => sample.timers),
      line('requests', SECOND, (sample) => sample.requests),
    ],
  });
}

function frame(xName: string, range: { max: number }): EChartsOption {
  return {
    animation: false,
    grid: { left: 64, right: 64, top: 40, bottom: 48 },
    textStyle: { fontSize: FONT_SIZE, fontFamily: 'system-ui, sans-serif' },
    legend: {
      selectedMode: false,
      top: 0,
      textStyle: { color: INK, fontSize: FONT_SIZE },
      icon: 'roundRect',
      itemHeight: 4,
      itemWidth: 18,
      // The width of a text is estimated here, and its font is known only where it is shown.
      itemGap: 36,
    },
    xAxis: {
      ...axis('value', xName),
      ...range,
      nameLocation: 'middle',
      nameGap: 30,
      splitLine: { show: false },
    },
  };
}

function axis(type: 'value', name: string): object {
  return {
    type,
    name,
    nameTextStyle: { color: INK, fontSize: FONT_SIZE },
    axisLabel: { color: INK, fontSize: FONT_SIZE },
    axisLine: { show: true, lineStyle: { color: FAINT } },
    axisTick: { lineStyle: { color: FAINT } },
    splitLine: { lineStyle: { color: FAINT, opacity: 0.5 } },
  };
}

function render(option: EChartsOption): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT });
  try {
    chart.setOption(option);
    return chart.renderToSVGString();
  } finally {
    chart.dispose();
  }
}

function shareUpTo(sorted: Float64Array, limit: number): number {
  return sorted.length === 0 ? 0 : sorted.filter((value) => value <= limit).length / sorted.length;
}

/** A round number not below `value`, and not far above. */
function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((candidate) => candidate * power >= value) ?? 10;
  return factor * power;
}
