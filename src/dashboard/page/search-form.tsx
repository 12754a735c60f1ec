import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { TASK_STATES } from '../../tasks/task-state.ts';
import { FILTER_TEXTS, type SearchFilter } from '../dashboard-json.ts';
import type { Query } from './api.ts';
import { Button } from './parts.tsx';
import { QueueChoices } from './queue-views.tsx';
import { go, to } from './route.ts';
import { StateLabel } from './states.tsx';

const [, ...FIELDS] = FILTER_TEXTS;

/** What the form asks for, as the query of an address. */
function queryIn(form: HTMLFormElement): Query {
  const data = new FormData(form);
  const one = (name: string): string => data.get(name) as string;
  const time = (name: string): number | undefined => new Date(one(name)).getTime() || undefined;
  return {
    ...Object.fromEntries(FILTER_TEXTS.map((name) => [name, one(name)])),
    ...{ from: time('from'), to: time('to') },
    ...{ state: data.getAll('state') as string[], queue: data.getAll('queue') as string[] },
  };
}

/** What is searched for. Submitting it changes the address, and that starts the search. */
export function SearchForm({ filter }: { readonly filter: SearchFilter }): JSX.Element {
  const form = useRef<HTMLFormElement>(null);
  // Another address replaces what was typed.
  useEffect(() => form.current?.reset(), [JSON.stringify(filter)]);
  const hasMore = [...FIELDS, 'from', 'to', 'queue'].some((name) => name in filter);
  return (
    <form
      ref={form}
      class="card search-form"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        go(to(['search'], queryIn(event.currentTarget)));
      }}
    >
      <div class="search-line">
        <input
          type="search"
          name="text"
          aria-label="Search in type, id, payload, error and result"
          placeholder="Type, id, payload, error or result"
          defaultValue={filter.text ?? ''}
        />
        <Button type="submit" label="Search" class="primary" />
      </div>
      <fieldset class="chips">
        <legend>State</legend>
        {TASK_STATES.map((state) => (
          <label key={state} class="chip">
            <input
              type="checkbox"
              name="state"
              value={state}
              defaultChecked={filter.state?.includes(state) === true}
            />
            <StateLabel state={state} />
          </label>
        ))}
      </fieldset>
      <details open={hasMore}>
        <summary>More filters</summary>
        <div class="fields">
          {FIELDS.map((name) => (
            <label key={name}>
              {name.charAt(0).toUpperCase() + name.slice(1)}
              <input type="text" name={name} placeholder="contains" defaultValue={filter[name] ?? ''} />
            </label>
          ))}
          {(['from', 'to'] as const).map((name) => (
            <label key={name}>
              {name === 'from' ? 'After' : 'Before'}
              <input type="datetime-local" name={name} step="1" defaultValue={localInput(filter[name])} />
            </label>
          ))}
          <label>
            Queues
            <select multiple name="queue" size={4}>
              <QueueChoices chosen={filter.queue ?? []} />
            </select>
          </label>
        </div>
      </details>
    </form>
  );
}

/** What the input needs: a local time without its zone. */
function localInput(atMs = NaN): string {
  const date = new Date(atMs);
  if (Number.isNaN(date.getTime())) return '';
  return new Date(atMs - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
