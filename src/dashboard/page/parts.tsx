import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { clipped, exactTime, isDate, relative, visible } from './format.ts';
import { serverNow } from './live.ts';
import type { Data } from './use-data.ts';

/** The small things that all pages are made of. */

type Tone = 'plain' | 'good' | 'warn' | 'bad' | 'accent';

export function Tag(props: {
  readonly tone?: Tone;
  readonly title?: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  const { tone = 'plain', title, children } = props;
  return (
    <span class={`tag ${tone}`} title={title}>
      {children}
    </span>
  );
}

const clocks = new Set<(nowMs: number) => void>();
setInterval(() => {
  if (document.visibilityState === 'hidden') return;
  for (const set of clocks) set(serverNow());
}, 1_000);

export function useNow(): number {
  const [nowMs, setNow] = useState(serverNow);
  useEffect(() => {
    clocks.add(setNow);
    return () => clocks.delete(setNow);
  }, []);
  return nowMs;
}

/** A time relative to now; the exact one, in the reader's zone, on hover. */
export function Time({ atMs }: { readonly atMs: number | undefined }): JSX.Element {
  const nowMs = useNow();
  if (atMs === undefined) return <span class="faint">–</span>;
  return (
    <time dateTime={isDate(atMs) ? new Date(atMs).toISOString() : ''} title={exactTime(atMs)}>
      {relative(atMs, nowMs)}
    </time>
  );
}

/** A name that may hold anything, of any length. */
export function Name(props: { readonly text: string; readonly mono?: boolean }): JSX.Element {
  const { text, mono = false } = props;
  const shown = visible(clipped(text, 2_000));
  return (
    <bdi class={mono ? 'name mono' : 'name'} title={clipped(shown)}>
      {shown === '' ? '(empty)' : shown}
    </bdi>
  );
}

interface NameLinkProps {
  readonly href: string;
  readonly text: string;
  readonly mono?: boolean;
  readonly kind?: string;
}

/** A name that leads to what has it. */
export function NameLink({ text, mono = false, kind = '', ...attributes }: NameLinkProps): JSX.Element {
  return (
    <a class={kind} {...attributes}>
      <Name text={text} mono={mono} />
    </a>
  );
}

/** A button that submits nothing, unless it is given that type. While it is busy it takes no click; one that is disabled would lose the focus. */
export function Button(
  props: JSX.IntrinsicElements['button'] & { readonly label: ComponentChildren; readonly isBusy?: boolean },
): JSX.Element {
  const { label, isBusy = false, ...attributes } = props;
  return (
    <button type="button" {...attributes} {...(isBusy && { 'aria-disabled': true, onClick: undefined })}>
      {label}
    </button>
  );
}

export function Icon({ d }: { readonly d: string }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path
        d={d}
        fill="none"
        stroke="currentColor"
        stroke-width="1.4"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

let isFirstPage = true;

/**
 * A page with its heading, to which the focus goes with each new address if what had it is not on the page; at first, that is the link to
 * skip the navigation.
 */
export function PageLayout(props: {
  readonly title: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children?: ComponentChildren;
}): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const isInMain = document.activeElement?.closest('main') != null;
    if (!isFirstPage && !isInMain) heading.current?.focus();
    isFirstPage = false;
  }, [location.hash]);
  return (
    <>
      <header class="page-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {props.title}
          </h1>
          {props.note !== undefined && <p class="note">{props.note}</p>}
        </div>
        {props.actions !== undefined && <div class="actions">{props.actions}</div>}
      </header>
      {props.children}
    </>
  );
}

export function Card(props: {
  readonly title?: ComponentChildren;
  readonly aside?: ComponentChildren;
  readonly kind?: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <section class={`card ${props.kind ?? ''}`}>
      {props.title !== undefined && (
        <header class="card-head">
          <h2>{props.title}</h2>
          {props.aside}
        </header>
      )}
      {props.children}
    </section>
  );
}

/** A number with its name, a note below it, and what else it has. */
export type Figure = readonly [
  label: string,
  value: ComponentChildren,
  note?: ComponentChildren,
  more?: {
    readonly unit?: string;
    readonly href?: string | undefined;
    readonly tone?: Tone;
    readonly picture?: JSX.Element;
  },
];

/** Figures side by side: a section of the page if it has a label, otherwise the first part of a card. */
export function Figures(props: { readonly label?: string; readonly list: readonly Figure[] }): JSX.Element {
  const { label, list } = props;
  const figures = list.map(([name, value, note, { unit, href, tone = '', picture } = {}]) => {
    const Element = href === undefined ? 'div' : 'a';
    return (
      <Element key={name} class="figure" {...(href !== undefined && { href })}>
        <span class="figure-label">{name}</span>
        <span class={`figure-value ${tone}`}>
          {value}
          {unit !== undefined && <small> {unit}</small>}
        </span>
        {note !== undefined && <span class="figure-note">{note}</span>}
        {picture}
      </Element>
    );
  });
  if (label === undefined) return <div class="figures inside">{figures}</div>;
  return (
    <section class="figures" aria-label={label}>
      {figures}
    </section>
  );
}

export function Empty(props: { readonly title: string; readonly children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <svg viewBox="0 0 48 48" width="40" height="40" aria-hidden="true">
        <circle cx="24" cy="24" r="18" />
        <circle cx="24" cy="24" r="11" />
        <path d="M24 24V14" />
      </svg>
      <p class="empty-title">{props.title}</p>
      {props.children !== undefined && <p>{props.children}</p>}
    </div>
  );
}

/** Grey lines where content will be. The style sheet shows them only after a moment. */
export function Skeleton({ lines = 6 }: { readonly lines?: number }): JSX.Element {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

export function Problem(props: { readonly message: string; readonly retry?: () => void }): JSX.Element {
  return (
    <div class="problem" role="alert">
      <Icon d="M8 1.8 15 14H1Zm0 4.7v3.4m0 1.9v.1" />
      <p>{visible(props.message)}</p>
      {props.retry !== undefined && <Button label="Try again" onClick={props.retry} />}
    </div>
  );
}

/** How far a search, or a change of what it finds, has come. */
export function ScanProgress(props: { readonly scanned: number; readonly total: number }): JSX.Element {
  const max = Math.max(1, props.total);
  return <progress class="scan" max={max} value={Math.min(props.scanned, max)} aria-label="Tasks scanned" />;
}

/** What was read; before that a skeleton; and an error above what was read before it, unless the shell shows that nothing can be read. */
export function Loaded<T>(props: {
  readonly of: Data<T>;
  readonly lines?: number;
  readonly children: (data: T) => ComponentChildren;
}): JSX.Element {
  const { data, error, status, reload } = props.of;
  const isAway = data !== undefined && (status === 0 || status === 401 || status === 503);
  return (
    <>
      {error !== undefined && !isAway && <Problem message={error} retry={reload} />}
      {data !== undefined && props.children(data)}
      {data === undefined && error === undefined && <Skeleton lines={props.lines ?? 6} />}
    </>
  );
}

/** Links, because every tab has an address. */
export function Tabs(props: {
  readonly label: string;
  readonly items: readonly {
    readonly id: string;
    readonly label: ComponentChildren;
    readonly count?: string;
    readonly href: string;
  }[];
  readonly current: string;
}): JSX.Element {
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a phone the current one may be outside of what is shown.
    const current = tabs.current?.querySelector<HTMLElement>('[aria-current]');
    if (tabs.current != null && current != null)
      tabs.current.scrollLeft = current.offsetLeft - tabs.current.offsetLeft - 24;
  }, [props.current]);
  return (
    <nav ref={tabs} class="tabs" aria-label={props.label}>
      {props.items.map(({ id, label, count, href }) => (
        <a key={id} href={href} aria-current={id === props.current ? 'page' : undefined}>
          {label}
          {count !== undefined && <span class="tab-count">{count}</span>}
        </a>
      ))}
    </nav>
  );
}
