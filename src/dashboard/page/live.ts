import { useEffect, useState } from 'preact/hooks';
import type { LiveJson } from '../dashboard-json.ts';
import { getJson, isRefused } from './api.ts';

/*
 * One event stream for all tabs of a dashboard. HTTP/1.1 allows six connections a host, and a stream takes one for good:
 *
 *      tab A (visible) ── holds the Web Lock ── EventSource ── api/live
 *         │ BroadcastChannel: every event
 *         ├──► tab B (visible), waits for the lock: gets it when A is hidden or closed
 *         └──► tab C (hidden): listens to nothing, and requests nothing
 *
 * Without `navigator.locks`, which browsers have for HTTPS and localhost only, each visible tab has a stream of its own.
 */

interface LiveState {
  readonly status: 'connecting' | 'open' | 'lost' | 'expired';
  readonly live: LiveJson | undefined;
}

/** What tabs send each other: what the one with the stream has, or a question for it. */
type Message = LiveState | 'hello';

/** An event comes every second; a server that is slow to read its broker sends fewer. */
const SILENCE_MS = 20_000;
/** Pause before a new attempt, if the browser does not reconnect by itself. */
const RETRY_MS = 2_000;

let state: LiveState = { status: 'connecting', live: undefined };
/** How far the clock of the server is ahead of the reader's, in milliseconds. */
let aheadMs = 0;
const listeners = new Set<(state: LiveState) => void>();
const name = `escapement:${location.pathname}`;
let channel: BroadcastChannel | undefined;
let source: EventSource | undefined;
let leaving: AbortController | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;

/** Runs the stream whenever the tab is visible. */
export function startLive(): void {
  document.addEventListener('visibilitychange', follow);
  addEventListener('pagehide', leave);
  addEventListener('pageshow', follow);
  follow();
}

function follow(): void {
  if (document.visibilityState === 'hidden') leave();
  else join();
}

function join(): void {
  if (leaving !== undefined) return;
  const left = new AbortController();
  leaving = left;
  expectEvent();
  // Lib DOM declares both as always there.
  const locks = navigator.locks as LockManager | undefined;
  if (locks === undefined) {
    openSource();
    return;
  }
  channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }: MessageEvent<Message>) => hear(data);
  channel.postMessage('hello' satisfies Message);
  const lead = async (): Promise<void> => {
    if (left.signal.aborted) return;
    openSource();
    await new Promise((resolve) => left.signal.addEventListener('abort', resolve));
  };
  // The request is aborted when the tab is hidden while it waits.
  locks.request(name, { signal: left.signal }, lead).catch(() => undefined);
}

function leave(): void {
  leaving?.abort();
  leaving = undefined;
  source?.close();
  source = undefined;
  channel?.close();
  channel = undefined;
  clearTimeout(silence);
}

function hear(message: Message): void {
  if (message !== 'hello') accept(message);
  else if (state.live !== undefined) broadcast();
}

/** Sends the other tabs what this one has, if it has the stream. */
function broadcast(): void {
  if (source !== undefined) channel?.postMessage(state);
}

function openSource(): void {
  source = new EventSource('api/live');
  source.onmessage = ({ data }: MessageEvent<string>) => {
    accept({ status: 'open', live: JSON.parse(data) as LiveJson });
    broadcast();
  };
  source.onerror = lose;
}

function lose(): void {
  change({ ...state, status: 'lost' });
  broadcast();
  // The browser reconnects after a lost connection, and gives up after an HTTP error.
  if (source !== undefined && source.readyState !== EventSource.CLOSED) return;
  const opened = source;
  void checkLogin();
  setTimeout(() => {
    if (source === opened && leaving !== undefined && opened !== undefined) openSource();
  }, RETRY_MS);
}

/**
 * Called when a request was refused, and when the stream is: an event source does not know the status. If the session is refused as well,
 * the login has expired, and nothing more is requested: the browser would show its login again and again.
 */
export async function checkLogin(): Promise<void> {
  try {
    await getJson('session');
  } catch (error) {
    if (!isRefused(error) || state.status === 'expired') return;
    leave();
    change({ ...state, status: 'expired' });
  }
}

function accept({ status, live = state.live }: LiveState): void {
  if (status === 'open') expectEvent();
  if (status === 'open' && live !== undefined) aheadMs = live.atMs - Date.now();
  change({ status, live });
}

/** The time by the clock of the server, in milliseconds since the Unix epoch. */
export function serverNow(): number {
  return Date.now() + aheadMs;
}

/** A connection may be lost without an error: a computer that slept, a network that dropped it. */
function expectEvent(): void {
  clearTimeout(silence);
  silence = setTimeout(() => {
    change({ ...state, status: 'lost' });
    if (source !== undefined) {
      source.close();
      openSource();
    }
    expectEvent();
  }, SILENCE_MS);
}

function change(next: LiveState): void {
  state = next;
  listeners.forEach((listener) => listener(next));
}

export function onLive(listener: (state: LiveState) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Renders the component again at every event. */
export function useLive(): LiveState {
  const [current, setCurrent] = useState(state);
  useEffect(() => {
    setCurrent(state);
    return onLive(setCurrent);
  }, []);
  return current;
}
