import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { TimerJson } from '../dashboard-json.ts';
import { compact, count, durationText, plural } from './format.ts';

/*
 * Two pictures of the same wheels, level by level:
 *
 *   Rings   the arrays as they are: the finest wheel inside. A bucket is a sector, the fuller the longer; the hand is at the bucket
 *           that the wheel's clock is in. A bucket that the hand reaches is emptied into the ring inside it.
 *   Strips  the time ahead of each wheel: buckets come from the right, and fall into the strip above when they reach the left end.
 */
export function WheelView(props: {
  /** A snapshot, from `SystemTimer.inspect()` or from the handler. */
  readonly wheels: Pick<TimerJson, 'nowMs' | 'size' | 'levels'>;
  readonly name: string;
}): JSX.Element {
  const { wheels, name } = props;
  const nowMs = useClockOf(wheels.nowMs);
  const { levels, size } = wheels;
  const summary = levels.map(
    (level, index) =>
      `level ${index + 1}, ticks of ${durationText(level.tickMs)}: ${pendingOf(level)} pending`,
  );
  return (
    <div class="wheels">
      <svg
        class="rings"
        viewBox="-200 -200 400 400"
        role="img"
        aria-label={`Wheels of ${name}: ${plural(size, 'pending timer')}; ${summary.join('; ')}`}
      >
        {levels.map((level, index) => (
          <Ring key={index} level={level} nowMs={nowMs} {...radiiOf(index, levels.length)} />
        ))}
        <text class="core" y="4">
          {compact(size)}
        </text>
        <text class="core-note" y="19">
          pending
        </text>
      </svg>
      <ol class="strips" aria-label="Levels, the finest first">
        {levels.map((level, index) => (
          <Strip key={index} level={level} index={index} nowMs={nowMs} />
        ))}
      </ol>
    </div>
  );
}

type Level = TimerJson['levels'][number];

const pendingOf = (level: Level): number => level.buckets.reduce((sum, { size }) => sum + size, 0);
const fullest = (level: Level): number => Math.max(1, ...level.buckets.map(({ size }) => size));

const CORE = 48;
const EDGE = 196;
const MOST_RING = 46;

function radiiOf(index: number, levels: number): { readonly inner: number; readonly outer: number } {
  const width = Math.min(MOST_RING, (EDGE - CORE) / Math.max(1, levels));
  const inner = CORE + index * width;
  return { inner, outer: inner + width - 5 };
}

/** Wheels that turn faster have no hand: it would only flicker. */
const SLOWEST_FLICKER_MS = 1_500;

function Ring(props: {
  readonly level: Level;
  readonly nowMs: number;
  readonly inner: number;
  readonly outer: number;
}): JSX.Element {
  const { level, nowMs, inner, outer } = props;
  const { tickMs, wheelSize, buckets } = level;
  const turnMs = tickMs * wheelSize;
  const slot = 360 / wheelSize;
  const most = fullest(level);
  const middle = (inner + outer) / 2;
  return (
    <g>
      <circle class="ring" r={middle} stroke-width={outer - inner} />
      {wheelSize <= 128 && <path class="slots" d={slotLines(wheelSize, inner, outer)} />}
      {buckets.map((bucket) => {
        const share = Math.sqrt(bucket.size / most);
        return (
          <path
            key={bucket.index}
            class="bucket"
            opacity={0.45 + 0.55 * share}
            d={sector(
              inner,
              inner + (outer - inner) * (0.3 + 0.7 * share),
              bucket.index * slot,
              (bucket.index + 1) * slot,
            )}
          >
            <title>{`${plural(bucket.size, 'timer')}, due in ${durationText(Math.max(0, bucket.expirationMs - nowMs))}`}</title>
          </path>
        );
      })}
      {turnMs >= SLOWEST_FLICKER_MS && (
        <path
          class="hand"
          d={`M0 ${-inner + 2}V${-outer - 2}`}
          transform={`rotate(${((nowMs % turnMs) / turnMs) * 360})`}
        />
      )}
    </g>
  );
}

const point = (radius: number, degrees: number): string => {
  const angle = ((degrees - 90) * Math.PI) / 180;
  return `${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`;
};

/** A part of a ring, from one angle to another, with a small gap to the next one. */
function sector(inner: number, outer: number, from: number, to: number): string {
  const gap = Math.min(0.6, (to - from) * 0.12);
  const [start, end] = [from + gap, to - gap];
  const large = end - start > 180 ? 1 : 0;
  return (
    `M${point(inner, start)}L${point(outer, start)}A${outer} ${outer} 0 ${large} 1 ${point(outer, end)}` +
    `L${point(inner, end)}A${inner} ${inner} 0 ${large} 0 ${point(inner, start)}Z`
  );
}

function slotLines(wheelSize: number, inner: number, outer: number): string {
  return Array.from({ length: wheelSize }, (_, index) => {
    const degrees = (index * 360) / wheelSize;
    return `M${point(inner, degrees)}L${point(outer, degrees)}`;
  }).join('');
}

function Strip(props: {
  readonly level: Level;
  readonly index: number;
  readonly nowMs: number;
}): JSX.Element {
  const { level, index, nowMs } = props;
  const { tickMs, wheelSize } = level;
  const turnMs = tickMs * wheelSize;
  const most = fullest(level);
  const width = 100 / wheelSize;
  return (
    <li>
      <span class="strip-head">
        <span>Level {index + 1}</span>
        <span class="faint">
          {count(wheelSize)} × {durationText(tickMs)}
        </span>
        <span class="spring" />
        <strong>{compact(pendingOf(level))}</strong>
      </span>
      <svg viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
        {level.buckets.map(({ index: key, expirationMs, size }) => {
          // A bucket is emptied when its time begins; it is there until the next snapshot.
          const x = Math.max(0, ((expirationMs - nowMs) / turnMs) * 100);
          const height = 3 + 11 * Math.sqrt(size / most);
          return <rect key={key} class="bucket" x={x} width={width * 0.85} y={14 - height} height={height} />;
        })}
      </svg>
      <span class="strip-scale faint">
        <span>now</span>
        <span>in {durationText(turnMs / 2)}</span>
        <span>in {durationText(turnMs)}</span>
      </span>
    </li>
  );
}

const FRAME_MS = 40;

/** The timer's clock between two snapshots: it goes on as the reader's does. Stands still for those who want no motion. */
function useClockOf(snapshotMs: number): number {
  const received = useRef({ snapshotMs, atMs: performance.now() });
  if (received.current.snapshotMs !== snapshotMs) received.current = { snapshotMs, atMs: performance.now() };
  const [, render] = useState(0);
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
  useEffect(() => {
    if (isStill) return undefined;
    let last = 0;
    let frame = requestAnimationFrame(function next(atMs) {
      if (atMs - last >= FRAME_MS) {
        last = atMs;
        render(atMs);
      }
      frame = requestAnimationFrame(next);
    });
    return () => cancelAnimationFrame(frame);
  }, []);
  return isStill ? snapshotMs : snapshotMs + performance.now() - received.current.atMs;
}
