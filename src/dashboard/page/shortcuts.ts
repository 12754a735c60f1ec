import { go, to } from './route.ts';

/** Keys that work on every page, unless the reader types into a field. */
export const SHORTCUTS: readonly (readonly [string, string])[] = [
  ['/', 'Search'],
  ['j k', 'Next and previous row; the arrow keys too'],
  ['Enter', 'Open the row'],
  ['x', 'Select the row'],
  ['?', 'This help'],
];

type Destinations = readonly { readonly path: string; readonly key: string }[];

/** Longest pause between `g` and the key after it. */
const SEQUENCE_MS = 1_500;

/** Listens until the function that it returns is called. */
export function listenToKeys(destinations: Destinations, openHelp: () => void): () => void {
  let wentAtMs = -Infinity;
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const isSecond = event.timeStamp - wentAtMs < SEQUENCE_MS;
    wentAtMs = -Infinity;
    const destination = isSecond ? destinations.find(({ key }) => key === event.key) : undefined;
    if (destination !== undefined) go(to(destination.path === '' ? [] : [destination.path]));
    else if (event.key === 'g') wentAtMs = event.timeStamp;
    else if (event.key === '/') focusSearch();
    else if (event.key === '?') openHelp();
    else if (!moveInRows(event.key)) return;
    event.preventDefault();
  };
  addEventListener('keydown', press);
  return () => removeEventListener('keydown', press);
}

function isTyping(target: EventTarget | null): boolean {
  if (document.querySelector('dialog[open]') !== null) return true;
  if (!(target instanceof HTMLElement)) return false;
  const isBox = target instanceof HTMLInputElement && (target.type === 'checkbox' || target.type === 'radio');
  return target.isContentEditable || (!isBox && /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function focusSearch(): void {
  const field = (): HTMLElement | null => document.getElementById('search');
  if (field() === null) go(to(['search']));
  // The page is there after the next render, or once it is loaded.
  const focus = (attempts: number): void => {
    const input = field();
    if (input !== null) input.focus();
    else if (attempts > 0) requestAnimationFrame(() => focus(attempts - 1));
  };
  focus(300);
}

/** Returns whether the key means a row. The arrows do once a row has the focus: before that they scroll. */
function moveInRows(key: string): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>('main [data-row]')];
  const tr = document.activeElement?.closest('tr');
  const at = rows.findIndex(
    (row) => row === document.activeElement || (tr != null && row.closest('tr') === tr),
  );
  const isDown = key === 'j' || (at >= 0 && key === 'ArrowDown');
  const isUp = key === 'k' || (at >= 0 && key === 'ArrowUp');
  if (isDown || isUp) {
    const row = rows[isDown ? Math.min(at + 1, rows.length - 1) : Math.max(at - 1, 0)];
    row?.focus();
    row?.scrollIntoView({ block: 'nearest' });
    return row !== undefined;
  }
  if (key !== 'x' || at < 0) return false;
  rows[at]?.closest('tr')?.querySelector<HTMLElement>('input[type=checkbox]')?.click();
  return true;
}
