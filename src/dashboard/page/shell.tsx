import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { SessionJson } from '../dashboard-json.ts';
import { CUT_OFF, LOGGED_OUT } from './api.ts';
import { Dialogs } from './dialog.tsx';
import { compact, visible } from './format.ts';
import { useLive } from './live.ts';
import { Button, Icon, Name, Tag, Time } from './parts.tsx';
import type { PageRoute } from './route.ts';
import { storedTheme, storeTheme, type Theme } from './theme.ts';

/** What is around every page: navigation and the state of the connection. */

interface Destination {
  readonly path: string;
  readonly label: string;
  /** What a dashboard must have for it; undefined for all. */
  readonly needs?: keyof SessionJson['has'];
}

const DESTINATIONS: readonly Destination[] = [
  { path: '', label: 'Overview', needs: 'tasks' },
  { path: 'search', label: 'Search', needs: 'tasks' },
  { path: 'servers', label: 'Servers', needs: 'tasks' },
  { path: 'schedules', label: 'Schedules', needs: 'tasks' },
  { path: 'charts', label: 'Charts', needs: 'tasks' },
  { path: 'health', label: 'Health' },
  { path: 'timers', label: 'Timers', needs: 'timers' },
  { path: 'purgatories', label: 'Purgatories', needs: 'purgatories' },
  { path: 'work-queues', label: 'Work queues', needs: 'workQueues' },
  { path: 'disk-queues', label: 'Disk queues', needs: 'diskQueues' },
];

/** By path: lines in a square of 16. */
const ICONS: Readonly<Record<string, string>> = {
  '': 'M2 2.5h5v5H2zM9 2.5h5v5H9zM2 9.5h5v4H2zM9 9.5h5v4H9z',
  search: 'M7 2.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6ZM10.5 10.5 14 14',
  servers: 'M2.5 2.5h11v4.5h-11zM2.5 9h11v4.5h-11zM5 4.8h.1M5 11.2h.1',
  schedules: 'M2.5 3.5h11v10h-11zM2.5 6.5h11M5.5 1.8v3M10.5 1.8v3',
  charts: 'M2 2v12h12M4.5 10.5l3-3.5 2.5 2L14 4.5',
  health: 'M1.5 8.5h3l2-5 3 9 2-4h3',
  timers: 'M8 2.5a5.8 5.8 0 1 0 0 11.6 5.8 5.8 0 0 0 0-11.6ZM8 5v3.4l2.2 1.4M6.3 1h3.4',
  purgatories: 'M4 1.8h8M4 14.2h8M4.8 1.8c0 4 6.4 4.4 6.4 12.4M11.2 1.8c0 4-6.4 4.4-6.4 12.4',
  'work-queues': 'M2 4h8M2 8h8M2 12h5M12 5.5 14.5 8 12 10.5',
  'disk-queues':
    'M2.5 4c0-1.2 2.5-2 5.5-2s5.5.8 5.5 2v8c0 1.2-2.5 2-5.5 2s-5.5-.8-5.5-2ZM2.5 4c0 1.2 2.5 2 5.5 2s5.5-.8 5.5-2M2.5 8c0 1.2 2.5 2 5.5 2s5.5-.8 5.5-2',
};

/** The pages that a dashboard has, those of tasks first. */
export function destinationsOf({ has }: SessionJson): readonly Destination[] {
  return DESTINATIONS.filter(({ needs }) => needs === undefined || has[needs]);
}

export function labelOf(path: string): string | undefined {
  return DESTINATIONS.find((destination) => destination.path === path)?.label;
}

export function Shell(props: {
  readonly session: SessionJson;
  readonly route: PageRoute;
  readonly children: ComponentChildren;
}): JSX.Element {
  const { session, route } = props;
  return (
    <div class="shell">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          // The hash is the address of the page: the link must not change it.
          event.preventDefault();
          document.querySelector<HTMLElement>('h1')?.focus();
        }}
      >
        Skip to the content
      </a>
      <Navigation session={session} route={route} />
      <main id="main">
        <Connection />
        {props.children}
      </main>
      <Dialogs />
    </div>
  );
}

function Brand({ title }: { readonly title: string }): JSX.Element {
  return (
    <a class="brand" href="#/">
      <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
        <circle cx="12" cy="12" r="9.4" stroke-dasharray="4.2 3.18" />
        <circle cx="12" cy="12" r="5.4" />
        <path d="M12 12V7.4M12 12l2.6 2.2" />
      </svg>
      <Name text={title} />
    </a>
  );
}

/** On phones the links of the bottom bar that come first; the rest is in a sheet. */
const IN_BAR = 4;

function Navigation(props: { readonly session: SessionJson; readonly route: PageRoute }): JSX.Element {
  const { session, route } = props;
  const [isOpen, setOpen] = useState(false);
  const current = route.parts[0] === 'queues' ? '' : (route.parts[0] ?? '');
  const place = route.parts.join('/');
  const shown = destinationsOf(session);
  const inBar = shown.slice(0, IN_BAR);
  const taskLinks = shown.filter(({ needs = 'tasks' }) => needs === 'tasks');
  const processLinks = shown.filter(({ needs = 'tasks' }) => needs !== 'tasks');
  useEffect(() => setOpen(false), [place]);
  return (
    <header class={isOpen ? 'side open' : 'side'}>
      <Brand title={session.title} />
      <nav aria-label="Pages">
        <NavGroup title="Tasks" links={taskLinks} inBar={inBar} current={current} />
        <NavGroup title="This process" links={processLinks} inBar={inBar} current={current} />
        <button type="button" class="more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" />
          More
        </button>
      </nav>
      <div class="side-foot">
        {session.actions.length === 0 && <Tag>read only</Tag>}
        <ThemeChoice />
        <span class="faint small">escapement {session.version}</span>
      </div>
    </header>
  );
}

function NavGroup(props: {
  readonly title: string;
  readonly links: readonly Destination[];
  readonly inBar: readonly Destination[];
  readonly current: string;
}): JSX.Element | null {
  const { title, links, inBar, current } = props;
  const { live } = useLive();
  const numbers: Readonly<Record<string, number | undefined>> = {
    ...{ servers: live?.serverCount, timers: live?.pendingTimers },
  };
  if (links.length === 0) return null;
  return (
    <div class="nav-group">
      <span class="nav-title">{title}</span>
      {links.map((link) => {
        const number = numbers[link.path] ?? 0;
        return (
          <a
            key={link.path}
            href={`#/${link.path}`}
            class={inBar.includes(link) ? 'in-bar' : ''}
            aria-current={link.path === current ? 'page' : undefined}
          >
            <Icon d={ICONS[link.path] ?? ''} />
            <span>{link.label}</span>
            {number > 0 && <span class="nav-count">{compact(number)}</span>}
          </a>
        );
      })}
    </div>
  );
}

const THEMES: Readonly<Record<Theme, string>> = { system: 'Auto', light: 'Light', dark: 'Dark' };

function ThemeChoice(): JSX.Element {
  const [stored] = useState(storedTheme);
  return (
    <select
      class="small"
      aria-label="Theme"
      onChange={({ currentTarget }) => storeTheme(currentTarget.value as Theme)}
    >
      {Object.entries(THEMES).map(([name, label]) => (
        <option key={name} value={name} selected={name === stored}>
          {label}
        </option>
      ))}
    </select>
  );
}

/** Why what is shown may be old. */
function Connection(): JSX.Element | null {
  const { status, live } = useLive();
  if (status === 'lost' || status === 'expired') {
    const isOver = status === 'expired';
    return (
      <p class="banner bad" role="alert">
        <strong>{isOver ? LOGGED_OUT : CUT_OFF}</strong>{' '}
        {isOver ? <Button label="Log in again" onClick={() => location.reload()} /> : 'Trying again.'}{' '}
        {live !== undefined && (
          <>
            What is shown was read <Time atMs={live.atMs} />.
          </>
        )}
      </p>
    );
  }
  if (live?.unavailable === undefined) return null;
  return (
    <p class="banner bad" role="alert">
      <strong>The broker cannot be reached:</strong> {visible(live.unavailable)}. What is shown was read
      before that. Trying again.
    </p>
  );
}
