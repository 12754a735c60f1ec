/** Charts of a result as SVG text, drawn by echarts without a browser: they need no script to be looked at. */
import {
  init,
  type BarSeriesOption,
  type CustomSeriesOption,
  type EChartsOption,
  type ScatterSeriesOption,
} from 'echarts';
import { ratiosOf } from './case-view.ts';
import { formatNumber } from './format.ts';
import { samplesOf, type CaseResult, type ContestantResult } from './result.ts';
import { median, summarize } from './statistics.ts';

const WIDTH = 900;
const ROW_HEIGHT = 36;
const FRAME_HEIGHT = 56;
/** Room at the right for the numbers, in a column where no bar, whisker or target crosses them. */
const NUMBER_WIDTH = 90;

/** Stands for the text colour of the page, which is dark or light: no chart colour can be both. */
const INK = '#010203';
const COLORS: Record<ContestantResult['role'], string> = {
  baseline: '#8a8f98',
  rival: '#c58a2b',
  ours: '#2f7de1',
};
/** Where a target lies. */
const TARGET_COLOR = '#d1453b';
const LOST_OPACITY = 0.45;

interface Bar {
  readonly label: string;
  readonly role: ContestantResult['role'];
  readonly samples: readonly number[];
  /** The least it should reach. */
  readonly floor?: number;
}

interface Frame {
  readonly axisName: string;
  /** Room at the left for the labels. */
  readonly labelWidth: number;
  /** Ratios: a logarithmic axis, and a line where neither wins. */
  readonly isRatio: boolean;
}

/** The primary metric of every contestant: a bar to the median, a whisker over the rounds. */
export function chartOfCase(result: CaseResult): string {
  const bars = result.contestants
    .map((contestant) => ({
      label: contestant.name,
      role: contestant.role,
      samples: samplesOf(contestant, result.primaryMetric),
    }))
    .filter(({ samples }) => samples.length > 0);
  const unit = result.contestants[0]?.metrics[0]?.unit ?? '';
  const axisName = [result.primaryMetric, unit].filter((word) => word !== '').join(', ');
  return drawBars(bars, { axisName, labelWidth: 150, isRatio: false });
}

/** baseline / ours for every case, and the targets among them. Left of 1 we lose. */
export function chartOfRatios(results: readonly CaseResult[]): string {
  const bars = results.flatMap((result) =>
    result.contestants
      .filter(({ role }) => role === 'ours')
      .map((ours) => ratioBar(result, ours))
      .filter(({ samples }) => samples.length > 0),
  );
  return bars.length === 0
    ? ''
    : drawBars(bars, { axisName: 'baseline / ours', labelWidth: 400, isRatio: true });
}

function ratioBar(result: CaseResult, ours: ContestantResult): Bar {
  const target = result.targets
    .map((judged) => judged.target)
    .filter((each) => each.kind === 'ratio')
    .find(({ contestant, against }) => contestant === ours.name && against === undefined);
  return {
    label: `${result.name}\n${ours.name} against ${result.baseline}`,
    role: ours.role,
    samples: ratiosOf(result, ours).filter((ratio) => Number.isFinite(ratio) && ratio > 0),
    ...(target === undefined ? {} : { floor: target.atLeast }),
  };
}

function drawBars(bars: readonly Bar[], frame: Frame): string {
  const height = FRAME_HEIGHT + bars.length * ROW_HEIGHT;
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  chart.setOption(optionsFor(bars, frame));
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg.replaceAll(INK, 'currentColor');
}

function optionsFor(bars: readonly Bar[], frame: Frame): EChartsOption {
  const text = { color: INK, fontFamily: 'system-ui, sans-serif' };
  const line = { lineStyle: { color: INK, opacity: 0.2 } };
  return {
    animation: false,
    grid: { left: frame.labelWidth, right: NUMBER_WIDTH, top: 8, bottom: 44 },
    xAxis: {
      type: frame.isRatio ? 'log' : 'value',
      name: frame.axisName,
      nameLocation: 'middle',
      nameGap: 26,
      nameTextStyle: text,
      axisLabel: { ...text, formatter: formatNumber },
      axisLine: line,
      splitLine: line,
    },
    yAxis: {
      type: 'category',
      inverse: true,
      data: bars.map(({ label }) => label),
      axisLabel: {
        ...text,
        fontSize: 11,
        lineHeight: 14,
        width: frame.labelWidth - 16,
        overflow: 'truncate',
      },
      axisLine: line,
      axisTick: { show: false },
    },
    series: [barSeries(bars, frame.isRatio), whiskerSeries(bars), targetSeries(bars)],
  };
}

function barSeries(bars: readonly Bar[], isRatio: boolean): BarSeriesOption {
  return {
    type: 'bar',
    barWidth: '55%',
    data: bars.map(({ role, samples }) => {
      const value = median(samples);
      return { value, itemStyle: { color: COLORS[role], opacity: isRatio && value < 1 ? LOST_OPACITY : 1 } };
    }),
    ...(isRatio ? { markLine: breakEven() } : {}),
  };
}

/** Where neither wins. */
function breakEven(): NonNullable<BarSeriesOption['markLine']> {
  return {
    symbol: 'none',
    silent: true,
    lineStyle: { color: INK, type: 'dashed' },
    label: { show: false },
    data: [{ xAxis: 1 }],
  };
}

/** The range over the rounds, and at the right the median in numbers. */
function whiskerSeries(bars: readonly Bar[]): CustomSeriesOption {
  return {
    type: 'custom',
    silent: true,
    z: 3,
    data: bars.map(({ samples }, row) => {
      const { min, max } = summarize(samples);
      return [min, max, row];
    }),
    encode: { x: [0, 1], y: 2 },
    renderItem: ({ dataIndex }, api) => {
      const [left = 0, y = 0] = api.coord([api.value(0), api.value(2)]);
      const [right = 0] = api.coord([api.value(1), api.value(2)]);
      const text = formatNumber(median(bars[dataIndex]?.samples ?? []));
      return {
        type: 'group',
        children: [
          {
            type: 'line',
            shape: { x1: left, x2: right, y1: y, y2: y },
            style: { stroke: INK, lineWidth: 2, opacity: 0.7 },
          },
          {
            type: 'text',
            x: WIDTH - NUMBER_WIDTH + 12,
            y,
            style: { text, fill: INK, fontSize: 12, verticalAlign: 'middle' },
          },
        ],
      };
    },
  };
}

/** A tick across the bar at the least it should reach. */
function targetSeries(bars: readonly Bar[]): ScatterSeriesOption {
  return {
    type: 'scatter',
    silent: true,
    z: 4,
    symbol: 'rect',
    symbolSize: [3, ROW_HEIGHT * 0.75],
    itemStyle: { color: TARGET_COLOR },
    data: bars.flatMap(({ floor }, row) => (floor === undefined ? [] : [[floor, row]])),
  };
}
