import type { LevelSnapshot, TimerSnapshot } from 'escapement';
import { formatCount, formatSpan } from '../../shared/number-format.ts';
import { clockIndex, sizesByIndex } from '../terminal/wheel-picture.ts';

const SIZE = 420;
const CENTRE = SIZE / 2;
const OUTER_RADIUS = CENTRE - 14;
const INNER_RADIUS = 60;
const GAP_BETWEEN_RINGS = 14;
/** Share of a bucket's angle that is left empty beside it. */
const GAP_BETWEEN_BUCKETS = 0.12;
const COLDEST = 0.18;

/** The wheels as rings of buckets, the finest outside, each with a hand where its clock stands. */
export function wheelRings(snapshot: TimerSnapshot): string {
  const { levels } = snapshot;
  const pitch = (OUTER_RADIUS - INNER_RADIUS + GAP_BETWEEN_RINGS) / Math.max(levels.length, 1);
  const rings = levels.map((level, index) => {
    const outer = OUTER_RADIUS - index * pitch;
    return ring(level, index + 1, outer - pitch + GAP_BETWEEN_RINGS, outer);
  });
  const caption = `${text(CENTRE, CENTRE - 2, 'count', formatCount(snapshot.size))}${text(CENTRE, CENTRE + 18, 'unit', 'timers waiting')}`;
  return `<svg class="rings" viewBox="0 0 ${SIZE} ${SIZE}" role="img" aria-label="The wheels at their fullest">${rings.join('')}${caption}</svg>`;
}

function ring(level: LevelSnapshot, number: number, inner: number, outer: number): string {
  const sizes = sizesByIndex(level);
  const fullest = Math.max(...sizes, 1);
  const turn = (2 * Math.PI) / level.wheelSize;
  const buckets = sizes.map((size, index) => {
    const title = `level ${number}, bucket ${index} (${formatSpan(level.tickMs)}): ${formatCount(size)} timers`;
    const heat =
      size === 0 ? '' : ` style="fill-opacity:${(COLDEST + (1 - COLDEST) * (size / fullest)).toFixed(2)}"`;
    const shape = sector(index * turn, (index + 1 - GAP_BETWEEN_BUCKETS) * turn, inner, outer);
    return `<path class="${size === 0 ? 'empty' : 'bucket'}"${heat} d="${shape}"><title>${title}</title></path>`;
  });
  return `<g>${buckets.join('')}${hand((clockIndex(level) + 0.5) * turn, inner, outer)}</g>`;
}

/** A piece of a ring between two angles, clockwise from the top. */
function sector(from: number, to: number, inner: number, outer: number): string {
  const [a, b, c, d] = [at(from, outer), at(to, outer), at(to, inner), at(from, inner)];
  return `M${a}A${outer.toFixed(1)} ${outer.toFixed(1)} 0 0 1 ${b}L${c}A${inner.toFixed(1)} ${inner.toFixed(1)} 0 0 0 ${d}Z`;
}

function hand(angle: number, inner: number, outer: number): string {
  return `<path class="hand" d="M${at(angle, inner - 5)}L${at(angle, outer + 5)}"/>`;
}

function at(angle: number, radius: number): string {
  return `${(CENTRE + radius * Math.sin(angle)).toFixed(1)} ${(CENTRE - radius * Math.cos(angle)).toFixed(1)}`;
}

function text(x: number, y: number, kind: string, content: string): string {
  return `<text class="${kind}" x="${x}" y="${y}" text-anchor="middle">${content}</text>`;
}
