import { render, type JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { SessionJson } from '../dashboard-json.ts';
import { messageOfError, openSession } from './api.ts';
import { visible } from './format.ts';
import { lazy } from './lazy.tsx';
import { startLive } from './live.ts';
import { OverviewPage } from './overview-page.tsx';
import { Empty, Problem, Skeleton } from './parts.tsx';
import { QueuePage } from './queue-page.tsx';
import { replace, useRoute, type PageRoute } from './route.ts';
import { destinationsOf, labelOf, Shell } from './shell.tsx';

const TaskPage = lazy(() => import('./task-page.tsx').then((file) => file.TaskPage));
const SearchPage = lazy(() => import('./search-page.tsx').then((file) => file.SearchPage));
const ServersPage = lazy(() => import('./servers-page.tsx').then((file) => file.ServersPage));
const SchedulesPage = lazy(() => import('./schedules-page.tsx').then((file) => file.SchedulesPage));
const ChartsPage = lazy(() => import('./charts-page.tsx').then((file) => file.ChartsPage));
const HealthPage = lazy(() => import('./health-page.tsx').then((file) => file.HealthPage));
const RuntimePage = lazy(() => import('./runtime-pages.tsx').then((file) => file.RuntimePage));

/** Pause before the session is requested again. */
const RETRY_MS = 2_000;

function App(): JSX.Element {
  const [session, setSession] = useState<SessionJson>();
  const [error, setError] = useState<string>();
  const [attempts, setAttempts] = useState(0);
  const route = useRoute();
  useEffect(() => {
    let retry: ReturnType<typeof setTimeout> | undefined;
    openSession().then(
      (opened) => {
        setSession(opened);
        setError(undefined);
        startLive();
      },
      (reason: unknown) => {
        setError(messageOfError(reason));
        retry = setTimeout(() => setAttempts((number) => number + 1), RETRY_MS);
      },
    );
    return () => clearTimeout(retry);
  }, [attempts]);
  useEffect(() => {
    document.title = titleOf(route, session);
  }, [session, location.hash]);
  if (session === undefined) {
    return (
      <main class="alone">
        <h1 class="unseen">Dashboard</h1>
        {error === undefined ? <Skeleton lines={10} /> : <Problem message={error} />}
      </main>
    );
  }
  return (
    <Shell session={session} route={route}>
      <Content route={route} session={session} />
    </Shell>
  );
}

/** The most specific first: `retry · default · Dashboard`. */
function titleOf({ parts, query }: PageRoute, session: SessionJson | undefined): string {
  const [first = '', queue, , id] = parts;
  const names =
    first === 'queues' ? [id ?? query.get('view') ?? query.get('state'), queue] : [labelOf(first)];
  return [...names, session?.title ?? 'Dashboard']
    .flatMap((name) => (name ? [visible(name.slice(0, 80))] : []))
    .join(' · ');
}

function Content(props: { readonly route: PageRoute; readonly session: SessionJson }): JSX.Element {
  const { route, session } = props;
  const [first = '', second, third, fourth] = route.parts;
  if (first === 'queues' && second !== undefined) {
    return third === 'tasks' && fourth !== undefined ? (
      <TaskPage key={location.hash} queue={second} id={fourth} />
    ) : (
      <QueuePage key={second} queue={second} />
    );
  }
  switch (first) {
    case '':
      return session.has.tasks ? <OverviewPage source={session.source} /> : <Elsewhere session={session} />;
    case 'search':
      return <SearchPage />;
    case 'servers':
      return <ServersPage />;
    case 'schedules':
      return <SchedulesPage key={second} id={second} />;
    case 'charts':
      return <ChartsPage />;
    case 'health':
      return <HealthPage />;
    case 'timers':
    case 'purgatories':
    case 'work-queues':
    case 'disk-queues':
      return <RuntimePage key={first} path={first} chosen={second} />;
    default:
      return (
        <Empty title="There is no such page">
          <a href="#/">Overview</a>
        </Empty>
      );
  }
}

/** A dashboard without a broker begins with the first page that it has. */
function Elsewhere({ session }: { readonly session: SessionJson }): JSX.Element {
  useEffect(() => {
    const [health, first = health] = destinationsOf(session);
    replace(`#/${first?.path ?? ''}`);
  }, []);
  return <Skeleton />;
}

const root = document.getElementById('root');
if (root !== null) render(<App />, root);
