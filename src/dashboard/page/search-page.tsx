import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { TASK_STATES, isTaskState, type TaskChange } from '../../tasks/task-state.ts';
import {
  FILTER_TEXTS,
  MAX_MATCHES,
  type SearchFilter,
  type SearchLine,
  type TaskJson,
} from '../dashboard-json.ts';
import { messageOfError, readLines, withQuery } from './api.ts';
import { BulkChange } from './bulk-change.tsx';
import { count, plural } from './format.ts';
import { Facts, Pager } from './lists.tsx';
import { Button, Card, Empty, Name, PageLayout, Problem, ScanProgress } from './parts.tsx';
import { pageOf, useRoute, type PageRoute } from './route.ts';
import { SearchForm } from './search-form.tsx';
import { ChangeButtons, TaskTable } from './task-table.tsx';

const PAGE_SIZE = 50;

/** The filter in an address. */
function filterOf({ query }: PageRoute): SearchFilter {
  const texts = FILTER_TEXTS.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : []));
  const times = (['from', 'to'] as const).flatMap((name) => {
    const ms = Number(query.get(name) ?? '');
    return query.has(name) && Number.isFinite(ms) ? [[name, ms]] : [];
  });
  const state = query.getAll('state').filter(isTaskState);
  const queue = query.getAll('queue');
  return {
    ...(Object.fromEntries([...texts, ...times]) as SearchFilter),
    ...(state.length > 0 ? { state } : {}),
    ...(queue.length > 0 ? { queue } : {}),
  };
}

interface Found {
  readonly tasks: readonly TaskJson[];
  readonly line: SearchLine;
  readonly isRunning: boolean;
  readonly error?: string;
}

const NOTHING: SearchLine = { scanned: 0, total: 0, matched: 0 };

/** Searches whenever the filter in the address changes, and shows what has been found while it goes on. */
export function SearchPage(): JSX.Element {
  const filter = filterOf(useRoute());
  const key = JSON.stringify(filter);
  const [runs, setRuns] = useState(0);
  const [found, setFound] = useState<Found>();
  const stop = useRef<AbortController | undefined>(undefined);
  useEffect(() => {
    if (key === '{}') {
      setFound(undefined);
      return undefined;
    }
    const leaving = new AbortController();
    stop.current = leaving;
    void search(filter, leaving.signal, (next) => {
      if (stop.current === leaving) setFound(next);
    });
    return () => {
      stop.current = undefined;
      leaving.abort();
    };
  }, [key, runs]);
  const again = (): void => setRuns((number) => number + 1);
  return (
    <PageLayout title="Search" note="Finds tasks by type, id, payload, error and result, in every state.">
      <SearchForm filter={filter} />
      {found === undefined ? (
        <Empty title="What are you looking for?">A word of the payload, a part of an error, an id.</Empty>
      ) : (
        <Results found={found} filter={filter} onStop={() => stop.current?.abort()} onAgain={again} />
      )}
    </PageLayout>
  );
}

async function search(
  filter: SearchFilter,
  signal: AbortSignal,
  show: (found: Found) => void,
): Promise<void> {
  let found: Found = { tasks: [], line: NOTHING, isRunning: true };
  let frame = 0;
  const change = (next: Found): void => {
    found = next;
    // Lines may come faster than a screen shows them.
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => show(next));
  };
  show(found);
  try {
    await readLines<SearchLine>(
      withQuery('search', { ...filter }),
      (line) => {
        const tasks = [...found.tasks, ...(line.tasks ?? [])];
        change({ ...found, tasks, line, ...(line.error && { error: line.error.message }) });
      },
      signal,
    );
    change({ ...found, isRunning: false });
  } catch (error) {
    // Stopped by the reader: what was found stays.
    change({ ...found, isRunning: false, ...(!signal.aborted && { error: messageOfError(error) }) });
  }
}

function Results(props: {
  readonly found: Found;
  readonly filter: SearchFilter;
  readonly onStop: () => void;
  readonly onAgain: () => void;
}): JSX.Element {
  const { found, onAgain } = props;
  const { tasks, line, isRunning, error } = found;
  const page = pageOf(useRoute());
  const shown = tasks.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  return (
    <Card>
      <div class="list-head">
        <Summary found={found} />
        <span class="spring" />
        {isRunning ? (
          <Button label="Stop" onClick={props.onStop} />
        ) : (
          <>
            <ChangeAll {...props} />
            <Button label="Search again" onClick={onAgain} />
          </>
        )}
      </div>
      {isRunning && <ScanProgress scanned={line.scanned} total={line.total} />}
      {error !== undefined && <Problem message={error} retry={onAgain} />}
      {shown.length > 0 && <TaskTable tasks={shown} label="Tasks that match" isMixed onChanged={onAgain} />}
      {tasks.length === 0 && !isRunning && error === undefined && (
        <Empty title="No task matches">
          {line.isDone === true
            ? 'Every task was looked at. '
            : 'The search was stopped before it was done. '}
          Try fewer filters: texts are found anywhere in a field, whatever their case.
        </Empty>
      )}
      {line.matched > tasks.length && (
        <p class="foot">
          The first {count(Math.min(MAX_MATCHES, tasks.length))} are shown. Actions apply to all{' '}
          {count(line.matched)}.
        </p>
      )}
      <Pager pages={Math.ceil(tasks.length / PAGE_SIZE)} />
    </Card>
  );
}

function Summary({ found }: { readonly found: Found }): JSX.Element {
  const { line, isRunning } = found;
  return (
    <span>
      <strong role="status" aria-live="polite">
        {isRunning && line.matched === 0 ? 'Searching' : plural(line.matched, 'match', 'matches')}
      </strong>{' '}
      <span class="faint">
        {count(line.scanned)} of {count(Math.max(line.total, line.scanned))} tasks scanned
        {!isRunning && line.isDone !== true && ', then stopped'}
      </span>
    </span>
  );
}

/** Actions on everything that matches; only after a search that has seen everything, so that the count is known. */
function ChangeAll(props: {
  readonly found: Found;
  readonly filter: SearchFilter;
  readonly onAgain: () => void;
}): JSX.Element | null {
  const { found, filter, onAgain } = props;
  const [change, setChange] = useState<TaskChange>();
  const { line } = found;
  if (line.isDone !== true || line.matched === 0) return null;
  return (
    <>
      <ChangeButtons
        states={filter.state ?? TASK_STATES}
        suffix={` all ${count(line.matched)}`}
        press={(name) => () => setChange(name)}
      />
      {change !== undefined && (
        <BulkChange
          change={change}
          filter={filter}
          matched={line.matched}
          summary={<FilterText filter={filter} />}
          onClose={(hasChanged) => {
            setChange(undefined);
            if (hasChanged) onAgain();
          }}
        />
      )}
    </>
  );
}

function FilterText({ filter }: { readonly filter: SearchFilter }): JSX.Element {
  const { state, queue, from, to: until, ...texts } = filter;
  const timeText = (word: string, ms: number | undefined): string[] =>
    ms === undefined ? [] : [`${word} ${new Date(ms).toLocaleString()}`];
  const times = [...timeText('after', from), ...timeText('before', until)];
  return (
    <Facts
      list={[
        ...Object.entries(texts).map(
          ([name, text]) =>
            [`${name === 'text' ? 'any field' : name} contains`, <Name text={text} />] as const,
        ),
        ['state', state?.join(', ')],
        ['queue', queue && <Name text={queue.join(', ')} />],
        ['time', times.length > 0 && times.join(' ')],
      ]}
    />
  );
}
